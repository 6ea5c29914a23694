// Where two runs differ, in words and tables: in their settings, in their first different event, to whom they look the
// same, and in their ends.

import {capital, classes, count, html, number, use} from "../lib.js";
import {difference, toDifference, toSights} from "../comparing.js";

const sides = ["first", "second"];

/** Names in a sentence: "P1", "P1 and P2", "P1, P2 and P3". */
export const list = names => names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

/** A table with a row for each thing and a column for each run. */
function Sides({caption, head, rows}) {
  return html`
    <table class="sides"><caption>${caption}</caption>
      <thead><tr><td></td>${head.map(h => html`<th scope="col">${h}</th>`)}</tr></thead>
      <tbody>${rows}</tbody></table>`;
}

/** To whom the runs look the same, in a sentence. */
function toWhom(processes) {
  const same = processes.filter(p => p.same).map(p => p.name);
  if (same.length === processes.length) return "They look the same to every process.";
  if (!same.length) return "Every process sees a difference.";
  const others = processes.filter(p => !p.same).map(p => p.name);
  return `They look the same to ${list(same)}. ${list(others)} ${others.length > 1 ? "see" : "sees"} a difference.`;
}

function First({answer}) {
  if (answer.same) return html`<p class="task"><b>The runs are equal:</b> ${count(answer.equal, "event")}.</p>`;
  return html`
    <p class="task">${answer.equal > 0 ? `The first ${count(answer.equal, "event")} are equal. ` : "No event is equal. "}
      ${answer.fields.length > 0 && html`Event ${number(answer.equal + 1)} differs in ${list(answer.fields)}:`}</p>
    <dl class="firsts">${answer.first.map((line, i) => html`
      <dt>${sides[i]} run</dt><dd>${line ? html`<b>${line.at}</b> ${line.says}` : html`<span class="mute">has ended</span>`}</dd>`)}</dl>
    <p class="row-of-buttons"><button onClick=${toDifference}>To the first difference</button></p>`;
}

/** A process in both runs. */
function Process({process: p, comparable}) {
  const decides = i => p.faulty[i] ? html`<span class="sign" title="faulty">✗</span> faulty` : p.decides[i] || "–";
  const differs = p.faulty[0] !== p.faulty[1] || p.decides[0] !== p.decides[1];
  return html`
    <tr class=${classes({differs})}><th scope="row">${p.name}</th><td>${decides(0)}</td><td>${decides(1)}</td>
      ${comparable && html`<td>${p.same ? html`<span class="sign ok" aria-hidden="true">✓</span> the same`
        : html`<button class="plain" onClick=${() => toSights(p.sees)} title="Go to what it sees first that differs">
          differs from its ${ordinal(p.until + 1)} event on</button>`}</td>`}</tr>`;
}

/** 1st, 2nd, 3rd, 4th. */
function ordinal(n) {
  const last = n % 10, teen = n % 100 >= 11 && n % 100 <= 13;
  return n + (teen ? "th" : ["th", "st", "nd", "rd"][last] ?? "th");
}

export function Differences() {
  const {answer} = use(difference);
  const {comparable, processes, settings, verdicts} = answer;
  return html`
    <section class="card differences" aria-labelledby="differences">
      <div class="card-head"><h2 id="differences">What differs</h2></div>
      <div class="difference-columns">
        <div><${First} answer=${answer}/>
          ${settings.length > 0 && html`<${Sides} caption="Settings" head=${["first", "second"]} rows=${settings.map(s => html`
            <tr class="differs"><th scope="row">${s.name}</th>
              ${s.is.map(v => html`<td>${v || html`<span class="mute">–</span>`}</td>`)}</tr>`)}/>`}</div>
        ${processes.length > 0 && html`<div>
          <p class="task">${comparable ? toWhom(processes) : "The protocols differ, so no process sees the same in both."}</p>
          <${Sides} caption=${comparable ? "Processes: what they decide, and what they see" : "Decisions"}
            head=${["first", "second", ...comparable ? ["sees"] : []]}
            rows=${processes.map(p => html`<${Process} key=${p.ref} process=${p} comparable=${comparable}/>`)}/></div>`}
        <div><${Sides} caption="Verdicts" head=${["first", "second"]} rows=${verdicts.map(v => html`
            <tr class=${classes({differs: v.is[0] !== v.is[1]})}><th scope="row">${capital(v.name)}</th>
              ${v.is.map(o => html`<td class=${classes({bad: /broken|VIOLATED/.test(o)})}>${o || "–"}</td>`)}</tr>`)}/></div>
      </div>
    </section>`;
}
