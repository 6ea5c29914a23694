// How the run ended: who decided what, which promises held and why, and what it cost beside the theorem.

import {capital, classes, count, html, number, use} from "../lib.js";
import {cursor, events, goTo, run, select} from "../store.js";
import {useMatcher} from "../selection.js";
import {Pan} from "./pan.js";
import {Witnesses} from "./witnesses.js";

/** The look of an outcome: a sign and a class. The words stand beside it, so the color says nothing alone. */
export function look(outcome) {
  if (outcome === "held" || outcome === "seen") return ["✓", "ok"];
  if (outcome === "VIOLATED") return ["✗", "bad"];
  if (outcome.endsWith("broken")) return ["✗", "broken"];
  return outcome.endsWith("held") ? ["✓", "open"] : ["–", "none"];
}

/** A process with its decision, if it has decided at the cursor. */
function Chip({process, selected}) {
  const at = use(cursor);
  const decided = process.decided > 0 && process.decided <= at;
  const later = process.decided > at;
  const title = process.faulty ? `${process.name} is faulty${process.behavior && ": " + process.behavior}`
    : decided ? `${process.name} decides ${process.decides} at event ${process.decided}` : process.name;
  return html`
    <button class=${classes({chip: true, faulty: process.faulty, picked: selected})} title=${title} aria-pressed=${selected}
      onClick=${() => select(process.ref)}>
      <span>${process.name}</span>${process.faulty && html`<span class="sign" aria-label="faulty">✗</span>`}
      ${decided ? html`<b>${process.decides}</b>` : later && html`<span class="mute" aria-label="not yet decided">…</span>`}
    </button>`;
}

/** What each process delivered, in its order. */
function Deliveries({all, processes}) {
  const shown = processes.filter(p => all[p.name]);
  if (!shown.length) return null;
  return html`
    <details class="fold"><summary>Deliveries at the end</summary>
      <dl class="pairs">${shown.map(p => html`<dt class=${classes({faulty: p.faulty})}>${p.name}</dt>
        <dd>${all[p.name].join(" · ")}</dd>`)}</dl></details>`;
}

function Cost({cost}) {
  const {theorem, measured, correct, theorem_is_at_most: atMost} = cost;
  const rows = Math.max(theorem.length, measured.length);
  if (!rows) return null;
  const cell = (list, i, key = "messages") => list[i] ? number(list[i][key]) : "–";
  const total = list => list.reduce((n, c) => n + c.messages, 0);
  const differs = correct.some((c, i) => c.messages !== measured[i]?.messages);
  const head = rows > 1 ? "round" : "";
  const row = (name, of) => html`<tr><th scope="row">${name}</th>${theorem.length > 0 && html`<td>${of(theorem)}</td>`}
    <td>${of(measured)}</td>${differs && html`<td>${of(correct)}</td>`}</tr>`;
  return html`
    <${Pan} label="Messages"><table class="cost"><caption>Messages</caption>
      <thead><tr>${head ? html`<th scope="col">${head}</th>` : html`<td></td>`}
        ${theorem.length > 0 && html`<th scope="col">${atMost ? "theorem, at most" : "theorem"}</th>`}
        <th scope="col">sent</th>${differs && html`<th scope="col">by correct</th>`}</tr></thead>
      <tbody>${Array.from({length: rows}, (_, i) => row(rows > 1 ? i : "all", list => cell(list, i)))}
        ${rows > 1 && row("all", list => number(total(list)))}</tbody></table>
      ${theorem.length > 0 && total(correct) > total(theorem) && html`<p class="why">The theorem counts a run in which nothing
        fails.</p>`}<//>`;
}

export function Verdict() {
  const {answer} = use(run);
  const at = use(cursor), end = use(events);
  const matches = useMatcher();
  const {report, processes, promised, bound, plan} = answer;
  return html`
    <section class="card verdict" aria-labelledby="verdict">
      <div class="card-head"><h2 id="verdict">Verdict</h2><span class="mute">at the end of the run</span></div>
      <div class="chips">${processes.map(p => html`<${Chip} key=${p.ref} process=${p} selected=${matches(p.ref)}/>`)}</div>
      ${!promised && html`<p class="beyond"><b>Beyond the bound.</b> ${capital(bound)}.</p>`}
      <ul class="verdicts">${report.verdicts.map(v => {
        const [sign, how] = look(v.outcome);
        return html`<li class=${how}><span class="sign" aria-hidden="true">${sign}</span>
          <div><p><b title=${v.says}>${v.property}</b> ${v.outcome}</p>
            ${v.broken && html`<p class="breach">${capital(v.broken)}</p><${Witnesses} verdict=${v}/>`}
            <p class="why">${v.because}${v.measured && html` · ${v.measured}`}</p>
            ${v.proof && html`<details class="fold proof"><summary>Why it holds</summary><p>${v.proof}</p></details>`}</div></li>`;
      })}</ul>
      ${answer.nodes?.unjudged && html`<p class="why">${capital(answer.nodes.unjudged)}.</p>`}
      <p class="why">${capital(report.title)}: ${report.paper}</p>
      <${Deliveries} all=${report.deliveries ?? {}} processes=${processes}/>
      <${Cost} cost=${report.cost}/>
      ${plan.length > 0 && html`<h3>Faults and circumstances</h3>
        <ul class="plan">${plan.map(line => html`<li>${capital(line)}</li>`)}</ul>`}
      ${Object.keys(report.refused).length > 0 && html`<p class="why">Refused messages: ${
        Object.entries(report.refused).map(([why, n]) => `${why}: ${count(n, "message")}`).join("; ")}</p>`}
      ${at < end && processes.some(p => p.decided > at) && html`<p><button onClick=${() =>
        goTo(Math.min(...processes.filter(p => p.decided > at).map(p => p.decided)))}>To the next decision</button></p>`}
    </section>`;
}
