// The history of one variable: its values at each process, from event to event. The value at the cursor is marked.

import {signal} from "../vendor/signals.js";
import {capital, classes, count, html, number, use, useAnswer} from "../lib.js";
import {cursor, moveTo, run} from "../store.js";
import {Icon} from "./icon.js";
import {Pan} from "./pan.js";

/** The variable whose history is shown; empty for none. */
export const watched = signal("");

function Values({process}) {
  const at = use(cursor);
  const now = process.values.findLastIndex(v => v.since <= at);
  return html`
    <div class="history-row"><dt>${process.name}</dt><dd><ol>${process.values.map((v, i) => html`
      <li class=${classes({now: i === now, future: v.since > at})}><button class="plain" onClick=${() => moveTo(v.since)}
        aria-current=${i === now ? "step" : null} title=${`since event ${number(v.since)}`}>${v.value || "–"}</button></li>`)}
      ${process.more > 0 && html`<li class="mute">and ${count(process.more, "more value")}</li>`}</ol></dd></div>`;
}

export function History() {
  const {setting} = use(run);
  const name = use(watched);
  const {answer, error} = useAnswer(name && setting ? {ask: "history", variable: name, run: setting} : null);
  if (!name) return null;
  return html`
    <div class="history" role="group" aria-labelledby="history">
      <div class="card-head"><h3 id="history">History of <code>${name}</code></h3>
        <button class="tool" aria-label="Close the history" onClick=${() => { watched.value = ""; }}><${Icon} name="close"/></button></div>
      ${error && html`<p class="wrong">${capital(error.message)}</p>`}
      ${answer && html`<${Pan} label=${`History of ${name}`}><dl>${answer.processes.map(p => html`
        <${Values} key=${p.ref} process=${p}/>`)}</dl><//>`}
    </div>`;
}
