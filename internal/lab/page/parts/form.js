// The form that changes the run. The run follows while the reader types, as soon as the engine accepts the setting;
// the address is replaced, so that "back" leads to the run before the form.

import {capital, html, use, useAnswer, useEffect, useRef, useState} from "../lib.js";
import {about, card, change, outdated, place, run, settingOf} from "../store.js";
import {helpOf, Input, Labeled, Processes, Search} from "./fields.js";
import {Icon} from "./icon.js";

const mainFields = ["n", "m", "source", "seed"];
const elsewhere = [...mainFields, "faulty", "values", "beyond-bound"];

/** Whether two places are the same run. */
const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** What being within the bound means for a run with these verdicts; null: it is not made yet. */
function within(verdicts) {
  if (!verdicts) return "Within the bound.";
  const not = verdicts.filter(v => v.outcome.startsWith("not promised"));
  if (!not.length) return "Within the bound: what the theorem promises must hold.";
  const why = [...new Set(not.map(v => v.because))].map(because =>
    `${not.filter(v => v.because === because).map(v => v.property).join(", ")} (${because})`);
  return `n and m are within the bound, but this run does not get every promise. Not promised: ${why.join("; ")}.`;
}

export function Form() {
  const shown = use(place) ?? {s: about.peek().protocols[0].name, flags: {}};
  const {answer: made, error: runError, busy} = use(run);
  const [draft, setDraft] = useState(shown);
  const written = useRef(shown); // the last place that the form asked for
  if (!same(shown, written.current)) { // another run was opened
    written.current = shown;
    setDraft(shown);
  }
  const setting = settingOf(draft);
  const got = useAnswer({ask: "form", run: setting}, 150);
  const last = useRef(null);
  if (got.answer) last.current = got.answer;
  const form = last.current;
  const current = got.question === JSON.stringify({ask: "form", run: setting});
  const failure = current ? got.answer?.error ?? got.error : null;

  useEffect(() => {
    if (!current || failure || same(draft, shown)) return;
    written.current = draft;
    change(draft);
  }, [got]);

  // Until the form can make a run, the page shows the last one.
  const stale = Boolean(got.answer?.error ?? got.error);
  useEffect(() => {
    outdated.value = stale;
    return () => { outdated.value = false; };
  }, [stale]);

  const wrongAll = text => html`<p class="wrong">${capital(text)}</p>`;
  if (!form) return html`<section class="card form">${got.error ? wrongAll(got.error.message) : "…"}</section>`;
  const fields = form.fields;
  const field = name => fields.find(f => f.name === name);
  const value = name => draft.flags[name] ?? field(name)?.value ?? "";
  const typed = name => name === "m" && !draft.flags.m && value(name) === field(name).default ? "" : value(name); // 0: the most
  const edit = (name, text) => {
    const flags = {...draft.flags, [name]: text};
    const isList = field(name)?.group === "events" && /list/.test(field(name).kind);
    if (text === "" && isList && !draft.s) flags[name] = "[]"; // replaces the list of the scenario
    else if (draft.s && (text === field(name)?.default || text === "")) delete flags[name];
    setDraft({...draft, flags});
  };
  const wrong = failure?.flag ? {[failure.flag]: capital(failure.message)} : {};
  const beyond = value("beyond-bound") === "true";
  // What the line of the theorem says need not be said again.
  const said = !form.within && failure?.message.includes(form.bound);
  if (said) delete wrong.m;
  // What empty fields stand for.
  const implied = {m: String(run.peek().answer?.report.m ?? ""), source: form.proposers.length === 1 ? form.proposers[0] : ""};
  const one = name => field(name) && html`
    <${Labeled} name=${name} usage=${field(name).usage} wrong=${wrong[name]}>
      <${Input} field=${field(name)} value=${typed(name)} wrong=${wrong[name]} edit=${edit}
        placeholder=${implied[name]}/><//>`;
  const more = fields.filter(f => f.group !== "events" && !elsewhere.includes(f.name));
  const circumstances = fields.filter(f => f.group === "events");
  const origin = draft.g ? `from the scenario ${draft.g}` : draft.y ? "from a scenario file" : "";

  return html`
    <section class="card form" aria-labelledby="form">
      <div class="card-head"><h2 id="form">Change the run</h2>
        <span class="mute">${busy ? "running …" : origin}</span></div>
      <div class="form-main">
        <${Labeled} name="protocol" label="protocol" wrong=${wrong.protocol}>
          <${Search} name="protocol" value=${form.protocol.name} options=${about.peek().protocols} wrong=${wrong.protocol}
            choose=${name => setDraft({s: name, flags: {}})}/><//>
        ${mainFields.slice(0, 3).map(one)}
        ${field("seed") && html`<${Labeled} name="seed" usage=${field("seed").usage} wrong=${wrong.seed}>
          <span class="with-button"><${Input} field=${field("seed")} value=${value("seed")} edit=${edit} wrong=${wrong.seed}/>
          <button class="tool" title="Another seed" aria-label="Another seed"
            onClick=${() => edit("seed", String(1 + Math.floor(Math.random() * 99999)))}><${Icon} name="dice"/></button></span><//>`}
      </div>
      <p class=${form.within ? "theorem" : "theorem beyond"} role="status">
        ${form.within ? html`<span class="sign ok" aria-hidden="true">✓</span>
            <span>${within(same(draft, shown) && !busy ? made?.report.verdicts : null)}</span>`
          : html`<span class="sign" aria-hidden="true">✗</span>
            <span>${capital(form.bound)}. Beyond the bound nothing is promised.</span>`}
        ${(!form.within || beyond) && html`<label class="check"><input type="checkbox" checked=${beyond}
          onChange=${e => edit("beyond-bound", e.target.checked ? "true" : draft.s ? "" : "false")}/> Go beyond the bound</label>`}</p>
      <${Processes} form=${form} faulty=${value("faulty")} values=${value("values")} edit=${edit} wrong=${wrong}/>
      <${More} title="Other settings" fields=${more} one=${one} value=${value} wrong=${wrong}/>
      <${More} title="Faults and circumstances" fields=${circumstances} one=${one} value=${value} wrong=${wrong}/>
      <${Text} draft=${draft} use=${y => setDraft({y, flags: {}})}/>
      ${failure && !failure.flag && !said && wrongAll((failure.line ? `line ${failure.line} of the scenario: ` : "") + failure.message)}
      ${failure?.flag && !field(failure.flag) && failure.flag !== "protocol" && wrongAll(`${failure.flag}: ${failure.message}`)}
      ${stale && made && html`<p class="notice" role="status">The form cannot make a run yet. Below is the last run that it made.</p>`}
      ${!failure && runError && wrongAll(runError.message)}
      ${!draft.s && html`<p><button onClick=${() => setDraft({s: form.protocol.name, flags: {}})}>
        Start from the defaults of ${form.protocol.name}</button></p>`}
    </section>`;
}

/** Fields that few runs need, folded unless one of them is wrong. */
function More({title, fields, one, value, wrong}) {
  const set = fields.filter(f => value(f.name) !== "" && value(f.name) !== f.default);
  if (!fields.length) return null;
  return html`
    <details class="fold" open=${fields.some(f => wrong[f.name])}><summary>${title}
        ${set.length > 0 && html` <span class="mute">${set.map(f => f.name).join(", ")}</span>`}</summary>
      <div class="form-more">${fields.map(f => html`
        <div key=${f.name}>${one(f.name)}<p class="usage">${capital(helpOf(f.usage))}</p></div>`)}</div>
    </details>`;
}

/** The whole run as the text of a scenario, for those who have one or want to write one. */
function Text({draft, use: take}) {
  const [open, setOpen] = useState(false);
  const setting = settingOf(draft);
  const plain = draft.y ?? (Object.keys(draft.flags).length === 0 ? card(draft.g)?.text : undefined);
  const exported = useAnswer(open && plain === undefined ? {ask: "export", form: "scenario", run: setting} : null, 200);
  const text = plain ?? exported.answer?.text ?? "";
  return html`
    <details class="fold" onToggle=${e => setOpen(e.target.open)}><summary>As the text of a scenario</summary>
      ${open && html`<textarea class="whole" rows=${Math.min(24, Math.max(6, text.split("\n").length))} spellcheck="false"
        aria-label="Scenario" value=${text} onInput=${e => take(e.target.value)}></textarea>
        <p class="usage">YAML, as for parley run --scenario. What you write here replaces the fields above.</p>`}
    </details>`;
}
