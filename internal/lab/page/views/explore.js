// The explorer: a model of a protocol with its faults, all of whose runs are tried.

import {capital, html, use, useAnswer, useEffect, useRef} from "../lib.js";
import {about} from "../store.js";
import {whole} from "../address.js";
import {linkTo, model, same, search, start} from "../searching.js";
import {linkTo as walkLink} from "../walking.js";
import {Copy} from "../parts/export.js";
import {helpOf, Input, Labeled, Search} from "../parts/fields.js";
import {Counts, End} from "../parts/found.js";

const mainFields = ["n", "m", "faulty", "liars", "crashes", "property", "step"];
const groups = [
  ["protocol", "The protocol"], ["start", "How runs begin"], ["faults", "Faults and delays"],
  ["goal", "What to search for"], ["search", "How to search"],
];

function Presets({current}) {
  const got = useAnswer({ask: "presets"});
  return html`
    <nav class="presets" aria-label="Examples"><ul>${(got.answer?.presets ?? []).map(p => html`
      <li><a class="card preset" href=${linkTo(p.model)} aria-current=${same(sorted(p.model), sorted(current)) ? "true" : null}>
        <b>${p.title}</b><span>${p.asks}</span></a></li>`)}</ul></nav>`;
}

const sorted = m => ({protocol: m.protocol, flags: Object.fromEntries(Object.entries(m.flags).sort())});

/** What an empty field stands for, if it is short. A space keeps the field from saying something else. */
const implied = (f, {n, m}) => f.name === "n" ? String(n || " ") : f.name === "m" ? String(m || " ")
  : /\(default: (?!0\))/.test(f.usage) && f.default === "0" ? " " : /^[\w.-]{1,9}/.exec(f.default)?.[0] ?? " ";

/** Fields that few searches need. */
function More({title, fields, one, wrong, set}) {
  const changed = fields.filter(f => f.name in set);
  if (!fields.length) return null;
  return html`
    <details class="fold" open=${fields.some(f => wrong[f.name])}><summary>${title}
        ${changed.length > 0 && html` <span class="mute">${changed.map(f => f.name).join(", ")}</span>`}</summary>
      <div class="form-more">${fields.map(f => html`
        <div key=${f.name}>${one(f)}<p class="usage">${capital(helpOf(f.usage))}</p></div>`)}</div></details>`;
}

/** The form of the model; fields are those of the last answer, until the next one comes. */
function Form({answer, failure, busy}) {
  const m = use(model);
  // That n and m are beyond the bound is said beside the switch that allows it.
  const [bound, hint] = failure?.message.split("; --beyond-bound") ?? [];
  const outside = hint === undefined ? "" : capital(bound);
  const wrong = failure?.flag && !outside ? {[failure.flag]: capital(failure.message)} : {};
  const edit = (name, text) => {
    const flags = {...m.flags, [name]: text};
    const field = answer.fields.find(f => f.name === name);
    if (text === "" || text === field?.default) delete flags[name];
    model.value = {...m, flags};
  };
  const valueOf = f => m.flags[f.name] ?? (/^(|0|\[\])$/.test(f.default) || f.name === "n" ? "" : f.default);
  const one = f => html`
    <${Labeled} name=${f.name} usage=${f.usage} wrong=${wrong[f.name]}>
      <${Input} field=${{...f, group: /list|mapping/.test(f.kind) && f.name !== "crashes" ? "events" : f.group}} value=${valueOf(f)}
        wrong=${wrong[f.name]} edit=${edit} placeholder=${implied(f, answer)}/><//>`;
  const main = mainFields.map(name => answer.fields.find(f => f.name === name)).filter(Boolean);
  const beyond = answer.fields.find(f => f.name === "beyond-bound");
  return html`
    <section class="card model" aria-labelledby="model">
      <div class="card-head"><h2 id="model">The model</h2></div>
      <div class="form-main">
        <${Labeled} name="protocol" wrong=${wrong.protocol}>
          <${Search} name="protocol" value=${m.protocol} options=${about.peek().protocols} wrong=${wrong.protocol}
            choose=${protocol => { model.value = {protocol, flags: {}}; }}/><//>
        ${main.map(one)}</div>
      ${beyond && html`<p class=${outside ? "theorem beyond" : "theorem"} role="status">
        ${outside && html`<span class="sign" aria-hidden="true">✗</span><span>${outside}.</span>`}
        <label class="check"><input type="checkbox" checked=${m.flags["beyond-bound"] === "true"}
          onChange=${e => edit("beyond-bound", e.target.checked ? "true" : "")}/> Beyond the bound, where nothing is promised</label></p>`}
      ${failure && !answer.fields.some(f => f.name === failure.flag) && failure.flag !== "protocol" && html`
        <p class="wrong">${capital((failure.flag ? failure.flag + ": " : "") + failure.message)}</p>`}
      ${groups.map(([group, title]) => html`<${More} key=${group} title=${title} one=${one} wrong=${wrong} set=${m.flags}
        fields=${answer.fields.filter(f => f.group === group && !mainFields.includes(f.name) && f.name !== "beyond-bound")}/>`)}
      <div class="row-of-buttons main-buttons">
        <button class="primary" disabled=${busy || failure} onClick=${() => start("explore")}>Search</button>
        ${!answer.unpaired && html`<button disabled=${busy} onClick=${() => start("pairs")}>Runs that look the same</button>`}
        ${!failure && html`<a class="button" href=${walkLink(m)}>Walk it yourself</a>`}
        ${Object.keys(m.flags).length > 0 && html`<button onClick=${() => { model.value = {...m, flags: {}}; }}>Defaults</button>`}</div>
    </section>`;
}

/** What the search will do, in the words of the explorer. */
function Words({answer, failure}) {
  return html`
    <section class="card in-words" aria-labelledby="in-words">
      <div class="card-head"><h2 id="in-words">What is tried</h2></div>
      ${failure ? html`<p class="mute">Nothing yet: what is wrong stands beside the model.</p>` : html`
        <ul class="model-words">${answer.words.map(line => html`<li>${line}</li>`)}</ul>
        ${answer.endless && html`<p class="beyond"><b>It may not end.</b> ${capital(answer.endless)}</p>`}
        <p class="again"><span class="mute">The same in a terminal:</span> <code>${answer.command}</code>
          ${" "}<${Copy} text=${answer.command} label="Copy"/></p>`}
    </section>`;
}

export function Explore() {
  const m = use(model), now = use(search);
  const question = m && {ask: "model", model: m};
  const got = useAnswer(question, 150);
  const last = useRef(null);
  if (got.answer) last.current = got.answer;
  // A link with a flag that makes no sense still has a form, that of the defaults, in which it is mended.
  const {protocols} = about.peek();
  const known = protocols.some(p => p.name === m?.protocol) ? m.protocol : protocols[0].name;
  const plain = useAnswer(got.error && !last.current ? {ask: "model", model: {protocol: known, flags: {}}} : null);
  const answer = last.current ?? plain.answer;
  const current = got.question === JSON.stringify(question);
  const failure = current ? got.answer?.error ?? got.error : null;
  // What a search does, and how it ended, comes into view when that changes; not when the view is opened again.
  const phase = now?.stop ? "counts" : now ? "end" : "";
  const before = useRef(phase);
  useEffect(() => {
    if (phase && phase !== before.current) {
      document.getElementById(phase)?.focus({preventScroll: true});
      document.getElementById(phase)?.closest("section").scrollIntoView({block: phase === "end" ? "start" : "nearest"});
    }
    before.current = phase;
  }, [phase]);
  return html`
    <div class="title far"><div><h1>Explore every run</h1>
      <p class="mute">A simulation tries one order of events.
        The explorer tries all of them, with all faults that the model allows.</p></div>
      <${Copy} text=${whole} label="Copy link" done="Link copied"/></div>
    ${m && html`<${Presets} current=${m}/>`}
    ${answer && m ? html`
      <div class="explore">
        <${Form} answer=${answer} failure=${failure} busy=${Boolean(now?.stop)}/>
        <div class="ends"><${Words} answer=${answer} failure=${failure}/>
          ${now?.stop && html`<${Counts}/>`}</div>
        ${now && !now.stop && html`<div class="results"><${End}/></div>`}</div>`
      : html`<p class="boot">The model is being made …</p>`}`;
}
