// The variables of every process at the cursor. Those that the last step changed are marked; empty ones are folded. A
// variable that is pressed shows its history.

import {signal} from "../vendor/signals.js";
import {classes, count, html, use, useAnswer} from "../lib.js";
import {useSight} from "../knowing.js";
import {useShown} from "../shown.js";
import {useMatcher} from "../selection.js";
import {History, watched} from "./history.js";
import {Pan} from "./pan.js";

const everything = signal(false);
const wanted = signal(""); // a part of the names that are shown
const empty = ["", "[]", "{}", "\"\"", "0", "false", "none", "nil", "map[]"];

/** Puts variables that have the first part of their name in common under that part. */
function grouped(variables) {
  const groups = [];
  for (const v of variables) {
    const [title, name] = v.name.includes(".") ? v.name.split(/\.(.*)/s) : ["", v.name];
    if (groups.at(-1)?.title !== title) groups.push({title, variables: []});
    groups.at(-1).variables.push({...v, name, whole: v.name});
  }
  return groups;
}

function Process({process, all, part, picked}) {
  const {select} = useShown(), sees = useSight();
  const of = use(watched);
  const shown = process.variables.filter(v => part ? v.name.toLowerCase().includes(part)
    : all || v.changed || !empty.includes(v.value));
  const folded = process.variables.length - shown.length;
  return html`
    <div class=${classes({process: true, faulty: process.faulty, picked, unseen: sees && !sees(process.ref)})}>
      <h3><button class="plain" onClick=${() => select(process.ref)}>${process.name}</button>
        ${process.faulty && html`<span class="sign">✗</span>`}</h3>
      ${process.faulty && html`<p class="mute">It may lie, so its state is not shown.</p>`}
      ${process.down && html`<p class="mute">It is down.</p>`}
      <${Pan} class="variables" label=${`Variables of ${process.name}`}>${grouped(shown).map(({title, variables}) => html`
        ${title && html`<h4>${title}</h4>`}<dl>${variables.map(v => html`<div class=${classes({changed: v.changed})}>
          <dt><button class="plain" aria-pressed=${v.whole === of} title="Show its history"
            onClick=${() => { watched.value = v.whole === of ? "" : v.whole; }}>${v.name}</button></dt>
          <dd>${v.value || "–"}${v.changed && html`<span class="visually-hidden"> changed</span>`}</dd></div>`)}</dl>`)}<//>
      ${folded > 0 && !part && html`<p class="mute">${count(folded, "empty variable")} not shown</p>`}
    </div>`;
}

export function State() {
  const {id, run, cursor} = useShown();
  const {setting} = use(run);
  const at = use(cursor), all = use(everything), part = use(wanted).trim().toLowerCase();
  const matches = useMatcher();
  const got = useAnswer(setting ? {ask: "state", at, run: setting} : null, 120);
  if (!got.answer) return null;
  const late = JSON.parse(got.question).at !== at;
  return html`
    <section class="card state" aria-labelledby=${id + "state"}>
      <div class="card-head"><h2 id=${id + "state"}>State after event ${at}</h2>
        <input type="search" class="variable-filter" placeholder="Filter variables" aria-label="Filter variables" value=${use(wanted)}
          onInput=${e => { wanted.value = e.target.value; }}/>
        <label class="check"><input type="checkbox" checked=${all}
          onChange=${e => { everything.value = e.target.checked; }}/> empty variables too</label></div>
      <${Pan} class=${classes({processes: true, late})} label="States">${got.answer.processes.map(p => html`
        <${Process} key=${p.ref} process=${p} all=${all} part=${part} picked=${matches(p.ref)}/>`)}<//>
      <${History}/>
    </section>`;
}
