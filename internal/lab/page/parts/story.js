// The story: every event in words. It is the twin of the pictures for readers who do not see them, and stays in step
// with the cursor. Long stories are asked for and drawn in pages, when a page comes into view.

import {classes, html, number, use, useAnswer, useEffect, useRef, useState} from "../lib.js";
import {useSight} from "../knowing.js";
import {useShown} from "../shown.js";
import {useMatcher} from "../selection.js";

const pageSize = 50;

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

/** One page of the story. Until it is near the view it is only as high as it will be. */
function Page({from, size, at, matches, box}) {
  const {run} = useShown();
  const {setting} = use(run);
  const place = useRef(null);
  const [near, setNear] = useState(false);
  const holds = at >= from && at < from + size || at === 0 && from === 1;
  useEffect(() => {
    const watch = new IntersectionObserver(seen => {
      if (seen.some(s => s.isIntersecting)) setNear(true);
    }, {root: box.current, rootMargin: "300px"});
    watch.observe(place.current);
    return () => watch.disconnect();
  }, []);
  const got = useAnswer(near || holds ? {ask: "story", from, count: size, run: setting} : null);
  return html`
    <ol class="page" start=${from} ref=${place} style=${got.answer ? null : {minHeight: size * 27 + "px"}}>
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
    const page = box.current?.children[Math.floor((Math.max(1, at) - 1) / pageSize)];
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
  // A page that does not change is the same element as before, which the renderer passes over.
  const known = useRef(new Map());
  const page = from => {
    const size = Math.min(pageSize, end - from + 1);
    const within = Math.max(at === 0 ? 0 : from - 1, Math.min(at, from + size));
    const last = known.current.get(from);
    if (last?.within === within && last.size === size && last.matches === matches && last.setting === setting) return last.element;
    const element = html`<${Page} key=${from} from=${from} size=${size} at=${within} matches=${matches} box=${box}/>`;
    known.current.set(from, {within, size, matches, setting, element});
    return element;
  };
  const pages = Array.from({length: Math.ceil(end / pageSize)}, (_, i) => page(i * pageSize + 1));
  return html`
    <section class="card story" aria-labelledby=${id + "story"}>
      <div class="card-head"><h2 id=${id + "story"}>Story</h2><span class="mute">press an event to go there</span></div>
      <div class="lines" ref=${box} onKeyDown=${keys}>${pages}
        ${end === 0 && html`<p class="mute">Nothing happens in this run: no process has anything to do.</p>`}</div>
    </section>`;
}
