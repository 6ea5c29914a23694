// One run: pictures, tables, tree, verdict, story and state, in step with one cursor and one selection.

import {capital, classes, count, html, use} from "../lib.js";
import {card, editing, observer, outdated, place, run, title} from "../store.js";
import {traceName} from "../traces.js";
import {AgainstMenu} from "../parts/against.js";
import {Argument} from "../parts/argument.js";
import {Copy} from "../parts/export.js";
import {Form} from "../parts/form.js";
import {Machine} from "../parts/machine.js";
import {Knowledge} from "../parts/knowledge.js";
import {Picture} from "../parts/picture.js";
import {Selected} from "../parts/selected.js";
import {State} from "../parts/state.js";
import {Story} from "../parts/story.js";
import {Tables} from "../parts/tables.js";
import {Transport} from "../parts/transport.js";
import {Tree} from "../parts/tree.js";
import {Verdict} from "../parts/verdict.js";
import {Waiting} from "../parts/waiting.js";

function Heading() {
  const {answer} = use(run), where = use(place), open = use(editing);
  const from = where?.g && card(where.g);
  const changed = from && Object.keys(where.flags).length > 0;
  const {report, processes} = answer;
  const faulty = processes.filter(p => p.faulty);
  return html`
    <div class="title">
      <div><h1>${capital(use(title))}</h1>
        <p class="mute">${report.protocol}, n = ${report.n}, m = ${report.m}
          ${faulty.map((p, i) => html`${i ? ", " : " · "}${p.name} <span class="sign">✗</span>${p.behavior && ` ${p.behavior}`}`)}
          ${answer.nodes ? " · from traces of nodes" : where.t ? " · " + traceName(where.t) : ` · seed ${report.seed}`}
          ${changed && " · changed"}
          ${answer.unrepeatable && html` · <span class="tag broken" title=${answer.unrepeatable}>≠ cannot be repeated</span>`}</p></div>
      <div class="row-of-buttons">${!where.t && html`<button aria-expanded=${open} onClick=${() => { editing.value = !open; }}>
          ${open ? "Close" : "Change…"}</button>`}
        <${AgainstMenu} place=${where} answer=${answer}/></div>
      ${from?.words && !changed && html`<p class="words"><span>${from.words}</span></p>`}
    </div>`;
}

function Foot() {
  const {answer} = use(run);
  return html`
    <footer class="foot">
      ${answer.unrepeatable && html`<p class="unrepeatable"><span class="sign" aria-hidden="true">≠</span> ${answer.unrepeatable}</p>`}
      <p><span class="mute">${answer.unrepeatable ? "To see it again:" : "The same again:"}</span>
        ${" "}<code>${answer.command}</code> <${Copy} text=${answer.command} label="Copy"/></p>
      <p class="mute">trace <code>${answer.report.trace_hash}</code> · ${count(answer.report.events, "event")}</p></footer>`;
}

const hint = html`<span class="mute hint">press anything: all views show it</span>`;

export function Run() {
  const {answer, error, busy} = use(run);
  const open = use(editing), sees = Boolean(use(observer)), old = use(outdated);
  const traced = Boolean(use(place)?.t); // a trace cannot be changed
  if (!answer) {
    return html`${error && html`<div class="title"><h1>No run yet</h1></div>
        <p class="notice trouble" role="alert">This run cannot be made: ${error.line > 0 && `line ${error.line}: `}${error.message}</p>`}
      ${!error && html`<p class="boot">The run is being made …</p>`}
      ${(open || error) && !traced && html`<${Form}/>`}`;
  }
  const pictures = answer.pictures.filter(name => name !== "tree");
  const messages = pictures.findIndex(name => name === "rounds" || name === "spacetime") >>> 0; // none: after all
  const picture = name => html`<${Picture} key=${name} name=${name} tools=${name === pictures[0] && hint}/>`;
  return html`
    <${Heading}/><${Machine}/>
    ${open && !traced && html`<${Form}/>`}
    <div class=${classes({run: true, busy, sees, outdated: old})}>
      <div class="area-a">${pictures.slice(0, messages).map(picture)}<${Waiting}/>${pictures.slice(messages).map(picture)}
        ${answer.owner && html`<${Tree}/>`}<${Argument}/></div>
      <div class="area-b"><${Selected}/><${Verdict}/><${Tables}/><${Knowledge}/></div>
      <div class="area-c"><${Story}/>${!answer.nodes && html`<${State}/>`}</div>
    </div>
    <${Foot}/>
    <${Transport}/>`;
}
