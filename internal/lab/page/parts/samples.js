// Random runs that continue a walk, with how each ends.

import {classes, count, html, use} from "../lib.js";
import {openTrace} from "../files.js";
import {notice} from "../store.js";
import {go, linkTo, model, moves, sample, sampleRuns} from "../walking.js";

const many = 5;

/** Shows the run of a trace that moves made in the view of runs. */
export const openRun = (trace, made) => openTrace(trace, "from a walk", linkTo(model.peek(), made))
  .catch(err => { notice.value = err.message; });

export function Samples() {
  const {answer, error, busy} = use(sample);
  const so = use(moves).length;
  return html`
    <section class="card samples" aria-labelledby="samples">
      <div class="card-head"><h2 id="samples">Where it can lead</h2>
        <button disabled=${busy} onClick=${() => sampleRuns(many)}>${answer ? `${many} other runs` : `Sample ${many} runs`}</button></div>
      ${!answer && !error && html`<p class="mute">Random moves from here to an end. They prove nothing, and show what is usual.</p>`}
      ${error && html`<p class="wrong" role="alert">${error.message}</p>`}
      ${answer && html`<ol>${answer.runs.map(r => html`
        <li class=${classes({bad: r.broken.length > 0})}>
          <p><span class=${r.broken.length ? "sign" : "sign ok"} aria-hidden="true">${r.broken.length ? "✗" : "✓"}</span>
            ${" "}${count(r.moves.length - so, "more move")}${!r.over && ", and not at an end"}.
            ${" "}${r.broken.length ? `Broken: ${r.broken.join("; ")}.` : "No property is broken."}
            ${" "}${decisions(r.decides)}</p>
          <p class="row-of-buttons"><button onClick=${() => go(r.moves)}>Walk there</button>
            <button onClick=${() => openRun(r.trace, r.moves)}>Open in Run</button></p></li>`)}</ol>`}
    </section>`;
}

/** Who decides what, in a sentence; "" if nobody does. */
function decisions(list) {
  const decided = list.filter(d => d.decides);
  if (!decided.length) return "";
  const values = [...new Set(decided.map(d => d.decides))];
  const none = list.length - decided.length;
  return values.map(v => `${decided.filter(d => d.decides === v).map(d => d.name).join(", ")}: ${v}`).join("; ") +
    (none ? `; ${none === 1 ? "one decides" : `${none} decide`} nothing.` : ".");
}
