// What algorithms cost: rounds, messages, bits and signatures against the number of processes, by formula and measured.

import {effect, signal} from "../vendor/signals.js";
import {capital, html, number, use, useAnswer, useRef} from "../lib.js";
import {address, note, whole} from "../address.js";
import {Copy, save} from "../parts/export.js";
import {Drawing} from "../parts/drawing.js";
import {Pan} from "../parts/pan.js";

const quantities = ["messages", "bits", "rounds", "signatures"];
const defaults = {m: 1, most: 20, quantity: quantities[0]};

/** What the chart shows. */
const chart = signal(defaults);

effect(() => {
  const {view, keys} = address.value;
  if (view !== "cost") return;
  const whole = (key, other) => /^\d{1,3}$/.test(keys.get(key) ?? "") ? Number(keys.get(key)) : other;
  const old = keys.size ? defaults : chart.peek();
  chart.value = {
    m: whole("m", old.m), most: whole("most", old.most),
    quantity: quantities.includes(keys.get("quantity")) ? keys.get("quantity") : old.quantity,
  };
});
effect(() => note("cost", Object.entries(chart.value).map(([key, value]) => [key, String(value)])));

function Limits({limits, n, m}) {
  return html`
    <section class="card" aria-labelledby="limits">
      <div class="card-head"><h2 id="limits">With n = ${n} processes and m = ${m}</h2></div>
      <${Pan} label="Limits"><table class="list limits"><thead><tr><th scope="col">algorithm</th><th scope="col">tolerates</th>
        <th scope="col" class="figure">n at least</th><th scope="col" class="figure">m at most</th>
        <th scope="col" class="figure">rounds</th><th scope="col" class="figure">messages</th>
        <th scope="col" class="figure">bits</th><th scope="col" class="figure">signatures</th></tr></thead>
        <tbody>${limits.map(l => html`<tr class=${l.possible ? "" : "impossible"}><th scope="row"><code>${l.name}</code></th>
          <td class="mute">${l.faults}</td><td class="figure">${l.smallest_n}</td><td class="figure">${l.largest_m}</td>
          ${l.possible ? html`<td class="figure">${l.rounds}</td>
            ${["messages", "bits", "signatures"].map(q => html`<td class="figure">
              ${l.at_most && l.total[q] > 0 ? html`<span class="mute" title="at most">≤ </span>` : ""}${number(l.total[q])}</td>`)}`
            : html`<td colspan="4" class="mute">${capital(l.why)}</td>`}</tr>`)}</tbody></table><//>
    </section>`;
}

export function Cost() {
  const shown = use(chart);
  const got = useAnswer({ask: "cost", ...shown}, 150);
  const last = useRef(null); // the last chart stays until the next one is made
  if (got.answer) last.current = {...got.answer, of: JSON.parse(got.question)};
  const answer = last.current;
  const set = changes => { chart.value = {...chart.peek(), ...changes}; };
  const typed = (name, most) => e => {
    if (e.target.value !== "") set({[name]: Math.max(0, Math.min(most, Math.trunc(Number(e.target.value))))});
  };
  const wrong = got.error;
  const field = (name, label, value, min, max, flag) => html`
    <div class="field"><label for=${"cost-" + name}>${label}</label>
      <input id=${"cost-" + name} type="number" min=${min} max=${max} value=${value} aria-invalid=${wrong?.flag === flag}
        onInput=${typed(name, 999)}/></div>`;
  const csv = () => save(`parley-cost-${answer.of.quantity}-m${answer.of.m}.csv`, new Blob([answer.csv], {type: "text/csv"}));
  return html`
    <div class="title far"><div><h1>What agreement costs</h1>
      <p class="mute">A line is the formula of the theorem; a dot is a run without faults that was made and counted.</p></div>
      <${Copy} text=${whole} label="Copy link" done="Link copied"/></div>
    <form class="cost-form" onSubmit=${e => e.preventDefault()}>
      ${field("m", "faulty processes, m", shown.m, 1, 8, "m")}${field("most", "processes, n up to", shown.most, 3, 40, "n")}
      <div class="field"><span class="label" id="quantity">count</span>
        <div class="segments" role="group" aria-labelledby="quantity">${quantities.map(q => html`
          <button type="button" aria-pressed=${q === shown.quantity} onClick=${() => set({quantity: q})}>${q}</button>`)}</div></div>
    </form>
    ${wrong && html`<p class="wrong" role="alert">${capital(wrong.message)}</p>`}
    ${answer ? html`
      <div class="costs">
        <section class="card" aria-labelledby="chart">
          <div class="card-head"><h2 id="chart">${capital(answer.of.quantity)} with m = ${answer.of.m}</h2>
            <button onClick=${csv}>Download CSV</button></div>
          <${Drawing} svg=${answer.svg}
            label=${`${capital(answer.of.quantity)} against the number of processes. The table has the numbers.`}
            prepare=${svg => svg.querySelector("text.head")?.remove()}/></section>
        ${answer.says.length > 0 && html`<section class="card" aria-labelledby="crossings">
          <div class="card-head"><h2 id="crossings">Where lines cross</h2></div>
          <ul class="crossings">${answer.says.map(line => html`<li>${line}</li>`)}</ul></section>`}
        <${Limits} limits=${answer.limits} n=${answer.of.most} m=${answer.of.m}/></div>`
      : !wrong && html`<p class="boot">Runs are made and counted …</p>`}`;
}
