// What is shown of the traces of the nodes of a cluster: which machine, and which agreement of a stream. Each process is
// a node; the traces may lack some of them.

import {html, number, use} from "../lib.js";
import {place, run, visit} from "../store.js";
import {write} from "../link.js";

/** Shows another part of the same traces. */
const go = async flags => visit(await write({view: "run", place: {...place.peek(), flags}}));

function Slot({nodes}) {
  const {machine, slot, first, last} = nodes;
  const to = n => go({machine, slot: String(n)});
  return html`
    <label for="slot">agreement</label>
    <span class="steps"><button aria-label="Agreement before" disabled=${slot <= first} onClick=${() => to(slot - 1)}>−</button>
      <input id="slot" type="number" min=${first} max=${last} value=${slot} onChange=${e => to(e.target.value)}/>
      <button aria-label="Next agreement" disabled=${slot >= last} onClick=${() => to(slot + 1)}>+</button></span>
    <span class="mute">${number(first)} to ${number(last)} are decided</span>`;
}

export function Machine() {
  const {nodes} = use(run).answer;
  if (!nodes) return null;
  const {machine, machines, cluster, missing, slot} = nodes;
  return html`
    <section class="card machine" aria-labelledby="nodes-shown">
      <h2 id="nodes-shown">Traces of nodes${cluster && html` <span class="mute">of cluster <code>${cluster}</code></span>`}</h2>
      <div class="machine-chosen">
        ${machines.length > 1 ? html`<label for="machine">machine</label>
          <select id="machine" onChange=${e => go({machine: e.target.value})}>
            ${machines.map(name => html`<option value=${name} selected=${name === machine}>${name}</option>`)}</select>`
          : html`<span>machine</span> <code id="machine">${machine}</code>`}
        ${slot > 0 && html`<${Slot} nodes=${nodes}/>`}</div>
      <ul class="machine-nodes">${nodes.nodes.map(n => html`<li key=${n.process}>${n.process} is <code>${n.node}</code>${
        n.note && html`<span class="mute">, ${n.note}</span>`}</li>`)}</ul>
      <p class="why">Times are in microseconds. The traces do not hold the variables of the processes.</p>
      ${missing.length > 0 && html`<p class="why">Not complete: ${missing.join(", ")}.</p>`}
    </section>`;
}
