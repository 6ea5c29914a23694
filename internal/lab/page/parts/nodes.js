// The nodes of the cluster: how each is, what it counts, and the buttons that act on its process.

import {capital, html} from "../lib.js";
import {act} from "../live.js";
import {Pan} from "./pan.js";

const sign = n => n.state === "ready" ? "✓" : n.paused ? "‖" : n.bad ? "✗" : "…";

const sentences = texts => texts.map(text => capital(text) + ". ").join("");

/** The buttons of a node. Each act has its counterpart in the same place. */
function Buttons({node, cannotPause}) {
  const {name, runs, paused} = node;
  const kill = runs
    ? html`<button onClick=${() => act({do: "kill", node: name}, `This really ends the process of ${name}.`)}
        aria-label=${"Kill " + name}>Kill</button>`
    : html`<button onClick=${() => act({do: "begin", node: name})} aria-label=${"Start again " + name}>Start again</button>`;
  const pause = paused
    ? html`<button onClick=${() => act({do: "resume", node: name})} aria-label=${"Resume " + name}>Resume</button>`
    : html`<button disabled=${!runs} onClick=${() => act({do: "pause", node: name}, `This really stops the process of ${name}.`)}
        aria-label=${"Pause " + name}>Pause</button>`;
  return html`<span class="live-buttons">${kill}${!cannotPause && pause}</span>`;
}

/** @param {{state: any}} props */
export function Nodes({state}) {
  const {nodes, own, cannot_pause: cannotPause} = state;
  const figures = nodes[0].figures;
  const troubled = nodes.filter(n => n.problems.length + n.notes.length > 0);
  return html`
    <section class="card" aria-labelledby="nodes">
      <div class="card-head"><h2 id="nodes">Nodes</h2></div>
      <${Pan} label="Nodes"><table class="list live-nodes"><thead><tr>
        <th scope="col">node</th><th scope="col">state</th>${own && html`<td></td>`}<th scope="col" class="figure">starts</th>
        ${figures.map(f => html`<th scope="col" class="figure" title=${capital(f.about)}>${f.name}</th>`)}</tr></thead>
        <tbody>${nodes.map(n => html`<tr key=${n.name}><th scope="row"><code>${n.name}</code></th>
          <td class=${n.bad ? "live-state bad" : "live-state"}>
            <span class=${n.bad ? "sign" : "sign ok"} aria-hidden="true">${sign(n)}</span> ${n.state}</td>
          ${own && html`<td><${Buttons} node=${n} cannotPause=${cannotPause}/></td>`}
          <td class="figure">${n.starts || "–"}</td>
          ${n.figures.map(f => html`<td class="figure" title=${capital(f.about)}>${f.value}</td>`)}</tr>`)}</tbody></table><//>
      ${own && cannotPause && html`<p class="mute">Nodes cannot be paused: ${cannotPause}.</p>`}
      <ul class="live-notes">${troubled.map(n => html`
        <li key=${n.name}><code>${n.name}</code> <span><span class="problem">${sentences(n.problems)}</span>
          <span class="mute">${sentences(n.notes)}</span></span></li>`)}</ul>
    </section>`;
}
