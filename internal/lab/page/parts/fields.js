// The fields of the form. Each shows what is wrong with it below itself.

import {classes, html, useRef} from "../lib.js";

/**
 * A flag of the run, as the engine describes it.
 * @typedef {{name: string, kind: string, usage: string, default: string, value: string, allowed?: string[],
 *     group: string}} Field
 */

/** A label, an input, and what is wrong with it. */
export function Labeled({name, label, wrong, usage, children}) {
  return html`
    <div class=${classes({field: true, bad: Boolean(wrong)})}><label for=${"f-" + name} title=${usage}>${label ?? name}</label>
      ${children}${wrong && html`<p class="wrong" id=${"w-" + name}>${wrong}</p>`}</div>`;
}

/** The input of one flag: a choice, YAML, or a line of text. */
export function Input({field, value, wrong, edit, placeholder}) {
  const {name, allowed, group, kind} = field;
  const common = {id: "f-" + name, name, "aria-invalid": Boolean(wrong), "aria-describedby": wrong ? "w-" + name : null};
  if (allowed) {
    return html`<select ...${common} onChange=${e => edit(name, e.target.value)}>
      ${!allowed.includes(value) && html`<option value=${value} selected>${value || "default"}</option>`}
      ${allowed.map(v => html`<option value=${v} selected=${v === value}>${v || "default"}</option>`)}</select>`;
  }
  if (group === "events" && /list|mapping/.test(kind)) {
    return html`<textarea ...${common} rows=${Math.min(6, Math.max(1, value.length / 44 | 0))} spellcheck="false" value=${value}
      placeholder=${example(field.usage)} onInput=${e => edit(name, e.target.value)}></textarea>`;
  }
  const numeric = /^(n|m|seed)$/.test(name);
  return html`<input ...${common} value=${value} type=${numeric ? "number" : "text"} min=${numeric ? 0 : null} spellcheck="false"
    autocomplete="off" placeholder=${placeholder || field.default} onInput=${e => edit(name, e.target.value)}/>`;
}

/** The example in the help of a flag. */
const example = usage => /'([^']+)'/.exec(usage)?.[1] ?? "";

/** The help without the example, which stands in the field. */
export const helpOf = usage => usage.replace(/, as in '.*'$/, "");

/** The faulty processes as a list: "1=twofaced,5=flip". */
export function readFaulty(text, names) {
  const found = names.map(() => "");
  for (const item of text.split(",").filter(Boolean)) {
    const [who, how = ""] = item.split(/=(.*)/s);
    const index = names.includes(who) ? names.indexOf(who) : Number(who) - numbersFrom(names);
    if (index in found) found[index] = how;
  }
  return found;
}

/** The number of the first process: the lecture counts from 0. */
const numbersFrom = names => Number(/\d+$/.exec(names[0] ?? "")?.[0] ?? 1);

/** Writes the faulty processes. */
export const writeFaulty = (list, names) =>
  list.map((how, i) => how && `${i + numbersFrom(names)}=${how}`).filter(Boolean).join(",");

/** The values as one for each process that proposes. */
export function readValues(text, proposers) {
  const list = text.split(",");
  return proposers.map((_, i) => list.length === 1 ? list[0] : list[i] ?? "");
}

/** Writes the values: one if all are equal. */
export const writeValues = list => new Set(list).size === 1 ? list[0] : list.join(",");

/** The rows of the processes: the value that each proposes, and how it is faulty. */
export function Processes({form, faulty, values, edit, wrong}) {
  const {names, proposers, behaviors} = form;
  const hows = readFaulty(faulty, names), proposed = readValues(values, proposers);
  const setFaulty = (i, how) => edit("faulty", writeFaulty(hows.map((h, k) => k === i ? how : h), names));
  const setValue = (i, value) => edit("values", writeValues(proposed.map((v, k) => k === i ? value : v)));
  return html`
    <fieldset class="process-rows"><legend>Processes</legend>
      <div class="rows">${names.map((name, i) => {
        const own = proposers.indexOf(name);
        const how = hows[i];
        const known = !how || behaviors.some(b => b.name === how);
        return html`
          <div class="process-row">
            <span class=${classes({who: true, faulty: how})}>${name}${how && html` <span class="sign">✗</span>`}</span>
            ${own >= 0 ? html`<input class="proposed" value=${proposed[own]} aria-label=${`Value of ${name}`} title=${`${name} proposes`}
              spellcheck="false" autocomplete="off" onInput=${e => setValue(own, e.target.value)}/>` : html`<span></span>`}
            <select aria-label=${`Behavior of ${name}`} onChange=${e => setFaulty(i, e.target.value)}>
              <option value="" selected=${!how}>correct</option>
              ${!known && html`<option value=${how} selected>${how}</option>`}
              ${behaviors.map(b => html`<option value=${b.name} selected=${b.name === how} title=${b.says}>${b.name}</option>`)}</select>
            ${how.includes("@") && html`<input class="how" value=${how} aria-label=${`Behavior of ${name} in detail`}
              title="When it crashes: in a round after some messages, as in crash@r1:2, or at a time, as in crash@790ns (790 ticks)"
              spellcheck="false" onInput=${e => setFaulty(i, e.target.value)}/>`}</div>`;
      })}</div>
      ${wrong.faulty && html`<p class="wrong">${wrong.faulty}</p>`}${wrong.values && html`<p class="wrong">${wrong.values}</p>`}
    </fieldset>`;
}

/** A list of names that can be searched by typing. It takes a name when it is one of the list. */
export function Search({name, value, options, choose, wrong}) {
  const input = useRef(null);
  const pick = text => {
    if (text !== value && options.some(o => o.name === text)) choose(text);
  };
  return html`
    <input id=${"f-" + name} ref=${input} list=${"l-" + name} value=${value} spellcheck="false" autocomplete="off"
      aria-invalid=${Boolean(wrong)} onFocus=${e => e.target.select()} onInput=${e => pick(e.target.value)}
      onBlur=${e => { e.target.value = value; }}/>
    <datalist id=${"l-" + name}>${options.map(o => html`<option value=${o.name}>${o.title}</option>`)}</datalist>`;
}
