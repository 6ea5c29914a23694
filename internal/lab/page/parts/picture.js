// A picture of the engine, put into the page. Its look is scene.css; the cursor and the selection change classes only.

import {capital, classes, count, html, use, useAnswer, useEffect, useLayoutEffect, useRef, useState} from "../lib.js";
import {useSight} from "../knowing.js";
import {useShown} from "../shown.js";
import {useCone, useLinked, useMatcher} from "../selection.js";
import {lanes} from "./lanes.js";
import {Marks, refAt} from "./marks.js";
import {Pan} from "./pan.js";
import {timeline} from "./timeline.js";

/** What the pictures show. */
export const titles = {
  rounds: "Messages, round by round", spacetime: "Messages in time", stages: "What each process knows of the outcome",
  clocks: "Clocks", order: "Order of deliveries", waiting: "What each process waits for", tree: "Information tree",
};

/**
 * Makes an SVG element of the engine's text. It is parsed as XML, so nothing in it becomes HTML.
 * @param {string} text
 * @returns {SVGSVGElement | null}
 */
export function parsed(text) {
  const root = new DOMParser().parseFromString(text, "image/svg+xml").documentElement;
  return root.tagName === "svg" ? /** @type {any} */ (document.importNode(root, true)) : null;
}

/** Takes the title out of a picture, because the page shows it as a heading. */
function titleOf(svg) {
  const text = svg.querySelector("text.head[x='0'], text.tree-title[x='0']");
  text?.remove();
  return text?.textContent ?? "";
}

/** Cuts the margins off a picture. The style sheet limits how far it grows and shrinks: a smaller one scrolls. */
export function trim(svg, margin = 10) {
  const box = svg.getBBox();
  const width = Math.ceil(box.width + 2 * margin), height = Math.ceil(box.height + 2 * margin);
  svg.setAttribute("viewBox", `${Math.floor(box.x - margin)} ${Math.floor(box.y - margin)} ${width} ${height}`);
  svg.removeAttribute("height");
  svg.removeAttribute("width");
  svg.style.setProperty("--natural", width + "px");
}

/** The picture in a sentence, for readers who do not see it. */
function summary(title, answer) {
  const {report, rounds} = answer;
  const faulty = answer.processes.filter(p => p.faulty).map(p => p.name);
  const sent = report.cost.measured.reduce((n, c) => n + c.messages, 0);
  return `${title}: ${count(report.n, "process", "processes")}, ` + (rounds.length ? count(rounds.length, "round") + ", " : "") +
    `${count(sent, "message")}. ` + (faulty.length ? `Faulty: ${faulty.join(", ")}. ` : "No process is faulty. ") +
    "The story lists the same events in words.";
}

/**
 * A picture in a card of its own.
 * @param {{name: string, of?: string, tools?: any, prepare?: (svg: SVGSVGElement) => (event: number) => void,
 *     foot?: any}} props of is the process whose tree is drawn; prepare is called with a new picture and returns what
 *     to do when the cursor moves
 */
export function Picture({name, of = "", tools, prepare, foot}) {
  const showing = useShown(), {run, cursor, moveTo, select} = showing;
  const {setting, answer} = use(run);
  const got = useAnswer(setting ? {ask: "picture", run: setting, name, ...of && {of}} : null);
  const frame = useRef(null);
  const shown = useRef(null);
  const [title, setTitle] = useState("");
  const matches = useMatcher(), linked = useLinked(), cone = useCone(), sees = useSight();
  const text = got.answer?.svg;

  useLayoutEffect(() => {
    const svg = text ? parsed(text) : null;
    shown.current = null;
    frame.current.replaceChildren(...svg ? [svg] : []);
    if (!svg) return;
    const heading = titleOf(svg) || titles[name] || capital(name);
    setTitle(heading);
    svg.setAttribute("aria-label", summary(heading, answer));
    svg.querySelector(":scope > title")?.remove(); // it would pop up everywhere
    trim(svg);
    const marks = new Marks(svg);
    frame.current.onscroll = lanes(svg, text, frame.current);
    const moves = [timeline(svg, name, showing), prepare?.(svg) ?? (() => {})];
    shown.current = {marks, moves};
    for (const move of [e => marks.to(e), ...moves]) move(cursor.peek());
    marks.select(matches, linked);
    marks.shade(cone);
  }, [text]);

  useEffect(() => cursor.subscribe(event => {
    shown.current?.marks.to(event);
    shown.current?.moves.forEach(move => move(event));
  }), [showing]);

  useLayoutEffect(() => shown.current?.marks.select(matches, linked));
  useLayoutEffect(() => shown.current?.marks.see(sees), [sees, text]);
  useLayoutEffect(() => shown.current?.marks.shade(cone), [cone]);

  const press = event => {
    const ref = refAt(event.target);
    if (ref) select(ref);
  };
  const twice = event => {
    const since = event.target.closest("[data-since]")?.dataset.since;
    if (since) moveTo(Number(since));
  };
  const id = showing.id + "picture-" + name + (of && "-" + of);
  return html`
    <section class="card picture" aria-labelledby=${id}>
      <div class="card-head"><h2 id=${id}>${title || titles[name] || capital(name)}</h2>${tools}</div>
      <${Pan} class=${classes({pan: true, linking: linked.size > 0 && !cone, stale: got.question && !text})} label=${title} box=${frame}
        onClick=${press} onDblClick=${twice}/>
      ${got.error && html`<p class="wrong">${capital(got.error.message)}</p>`}
      ${!text && !got.error && html`<p class="mute">Drawing …</p>`}
      ${foot}
    </section>`;
}
