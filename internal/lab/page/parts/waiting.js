// What each process holds back and waits for at the cursor, its vector clock, and the state of its replica. The engine
// knows the whole run, so a step of the cursor asks nothing.

import {classes, count, html, use, useAnswer} from "../lib.js";
import {cursor, run, select} from "../store.js";
import {useMatcher} from "../selection.js";
import {Pan} from "./pan.js";

/** The last part of a name: the parts before it say which layer of a protocol has the variable. */
const last = name => name.split(".").at(-1);

/** The spans of a process that the cursor is in. */
const now = (spans, at) => spans.filter(s => s.since <= at && (!s.until || s.until > at));

/** A vector clock; a cell that the last event changed is marked. */
function Vector({span, before, names, at}) {
  const ticks = span.since === at && before;
  return html`<p class="counts" title=${span.name}><span class="mute">${last(span.name)}</span>
    <span class="cells">${span.cells.map((count, i) => html`<span class=${classes({cell: true, ticked: ticks && before.cells[i] !== count})}
      title=${`${count} of ${names[i]}`}>${count}</span>`)}</span></p>`;
}

/** A message that waits. */
const Held = ({span}) => html`<li class="held"><b>${span.value}</b> <span class="mute">of ${span.from}</span>
  ${span.place && html` <span class="place">${span.place}</span>`}
  ${span.waits && html`<span class="for">waits for ${span.waits}</span>`}</li>`;

function Process({process, names, picked, at}) {
  const spans = now(process.spans, at);
  const of = kind => spans.filter(s => s.kind === kind);
  const before = span => process.spans.find(s => s.kind === "counts" && s.name === span.name && s.until === span.since);
  const held = of("held");
  return html`
    <div class=${classes({process: true, picked})}>
      <h3><button class="plain" onClick=${() => select(process.ref)}>${process.name}</button></h3>
      ${of("waits").map(s => html`<p class="blocked">waits for ${s.waits}<span class="place">holds ${s.value}</span></p>`)}
      ${of("counts").map(s => html`<${Vector} span=${s} before=${before(s)} names=${names} at=${at}/>`)}
      ${of("replica").map(s => html`<p class=${classes({replica: true, parts: s.parts && s.parts <= at})}>
        <span class="mute">holds</span> <b>${s.value || "nothing"}</b>
        <span class="mute">after ${count(Number(s.place), "command")}</span>
        ${s.parts > 0 && s.parts <= at && html` <span class="sign">≠</span>
          <span class="for">another replica holds something else at that place</span>`}</p>`)}
      ${held.length > 0 ? html`<ol class="queue">${held.map(s => html`<${Held} key=${s.from + s.value + s.since} span=${s}/>`)}</ol>`
        : process.spans.some(s => s.kind === "held") && html`<p class="mute">nothing is held back</p>`}
      ${!spans.length && !process.spans.some(s => s.kind === "held") && html`<p class="mute">nothing</p>`}
    </div>`;
}

export function Waiting() {
  const {setting} = use(run);
  const at = use(cursor);
  const matches = useMatcher();
  const got = useAnswer(setting ? {ask: "waiting", run: setting} : null);
  const all = got.answer?.processes ?? [];
  if (!all.some(p => p.spans.length)) return null;
  const names = all.map(p => p.name);
  return html`
    <section class="card waiting" aria-labelledby="waiting">
      <div class="card-head"><h2 id="waiting">What each process holds after event ${at}</h2></div>
      <${Pan} class="processes" label="What processes hold and wait for">${all.map(p => html`
        <${Process} key=${p.ref} process=${p} names=${names} picked=${matches(p.ref)} at=${at}/>`)}<//>
    </section>`;
}
