// The story: every event in words. It is the twin of the pictures for readers who do not see them, and stays in step
// with the cursor. Long stories are asked for and drawn in pages, when a page comes into view.

import {classes, html, number, use, useAnswer, useEffect, useRef, useState} from "../lib.js";
import {useSight} from "../knowing.js";
import {useShown} from "../shown.js";
import {useMatcher} from "../selection.js";

const pageSize = 50, partSize = 50 * pageSize; // lines of a page, and of a part of the story

/**
 * Returns the pieces of a part of the story. A piece that does not change is the same element as before, which the
 * renderer passes over.
 */
function piecesOf(Kind, each, known, {from, size, at, matches, setting, box}) {
  return Array.from({length: Math.ceil(size / each)}, (_, i) => {
    const first = from + i * each, many = Math.min(each, from + size - first);
    const within = Math.max(at === 0 ? 0 : first - 1, Math.min(at, first + many));
    const last = known.get(first);
    if (last?.within === within && last.many === many && last.matches === matches && last.setting === setting) return last.element;
    const element = html`<${Kind} key=${first} from=${first} size=${many} at=${within} matches=${matches} box=${box}/>`;
    known.set(first, {within, many, matches, setting, element});
    return element;
  });
}

const holds = ({from, size, at}) => at >= from && at < from + size || at === 0 && from === 1;

/** Returns a reference to an element, and whether it is near the view, or has been. */
function useNear(box) {
  const place = useRef(null);
  const [near, setNear] = useState(false);
  useEffect(() => {
    const watch = new IntersectionObserver(seen => {
      if (seen.some(s => s.isIntersecting)) setNear(true);
    }, {root: box.current, rootMargin: "300px"});
    watch.observe(place.current);
    return () => watch.disconnect();
  }, []);
  return [place, near];
}

const lineHeight = 27; // about, in pixels

function Line({line, at, matches}) {
  const {goTo} = useShown(), sees = useSight();
  const now = line.event === at;
  const picked = matches("e" + line.event) || !/^P\d+$/.test(line.ref) && matches(line.ref);
  return html`
    <li class=${classes({line: true, now, future: line.event > at, picked, faulty: line.fault,
      unseen: sees && !sees("e" + line.event)})} data-event=${line.event}
      aria-current=${now ? "step" : null}>
      <button tabindex=${now || (at === 0 && line.event === 1) ? 0 : -1} onClick=${() => goTo(line.event)}>
        <span class="nr">${number(line.event)}</span>
        <span class="says"><b>${line.at}</b> ${line.says}</span>
        <span class="time">${number(line.time)}</span></button></li>`;
}

/** A part of the story. Until it is near the view it is only as high as it will be. */
function Part(part) {
  const {run} = useShown();
  const {setting} = use(run);
  const [place, near] = useNear(part.box);
  const known = useRef(new Map());
  const shown = near || holds(part);
  return html`
    <div ref=${place} style=${shown ? null : {minHeight: part.size * lineHeight + "px"}}>
      ${shown && piecesOf(Page, pageSize, known.current, {...part, setting})}</div>`;
}

/** One page of the story, with the same rule. */
function Page({from, size, at, matches, box}) {
  const {run} = useShown();
  const {setting} = use(run);
  const [place, near] = useNear(box);
  const got = useAnswer(near || holds({from, size, at}) ? {ask: "story", from, count: size, run: setting} : null);
  return html`
    <ol class="page" start=${from} ref=${place} style=${got.answer ? null : {minHeight: size * lineHeight + "px"}}>
      ${got.answer?.lines.map(line => html`<${Line} key=${line.event} line=${line} at=${at} matches=${matches}/>`)}
      ${got.error && html`<li class="wrong">${got.error.message}</li>`}
    </ol>`;
}

export function Story() {
  const {id, run, cursor, events} = useShown();
  const {setting} = use(run);
  const at = use(cursor), end = use(events);
  const matches = useMatcher();
  const box = useRef(null);
  // The list follows the cursor, without moving the page around it.
  useEffect(() => {
    const follow = () => {
      const line = box.current?.querySelector(`[data-event="${Math.max(1, at)}"]`);
      if (!line) return false;
      const middle = line.offsetTop - box.current.clientHeight / 2 + line.offsetHeight / 2;
      const away = Math.abs(box.current.scrollTop - middle) > box.current.clientHeight / 3;
      if (away) box.current.scrollTop = middle;
      return true;
    };
    if (follow()) return;
    const line = Math.max(1, at) - 1, part = box.current?.children[Math.floor(line / partSize)];
    const page = part?.children[Math.floor(line % partSize / pageSize)] ?? part;
    if (page) box.current.scrollTop = page.offsetTop;
    const late = setInterval(() => follow() && clearInterval(late), 60); // until the page has its lines
    return () => clearInterval(late);
  }, [at, end]);
  const keys = event => {
    const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
    if (!step) return;
    event.preventDefault();
    const lines = [...box.current.querySelectorAll("button")];
    lines[lines.indexOf(event.target) + step]?.focus();
  };
  const known = useRef(new Map());
  const parts = piecesOf(Part, partSize, known.current, {from: 1, size: end, at, matches, setting, box});
  return html`
    <section class="card story" aria-labelledby=${id + "story"}>
      <div class="card-head"><h2 id=${id + "story"}>Story</h2><span class="mute">press an event to go there</span></div>
      <div class="lines" ref=${box} onKeyDown=${keys}>${parts}
        ${end === 0 && html`<p class="mute">Nothing happens in this run: no process has anything to do.</p>`}</div>
    </section>`;
}
