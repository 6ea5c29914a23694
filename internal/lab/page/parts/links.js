// The links between the nodes, as a triangle with a button for each two nodes.

import {html} from "../lib.js";
import {act} from "../live.js";

const signs = {up: "●", down: "○", cut: "✂"};

/** @param {{state: any}} props */
export function Links({state}) {
  const {nodes, links, own} = state;
  const names = nodes.map(n => n.name);
  const cell = (a, b) => {
    const link = links.find(l => l.a === a && l.b === b);
    if (!link) return html`<td></td>`;
    const cut = link.state === "cut";
    const says = `${a} and ${b}: ${link.state}`;
    if (!own) return html`<td><span class=${"link " + link.state} title=${says}>${signs[link.state]}</span></td>`;
    return html`<td><button class=${"link " + link.state} title=${says}
      aria-label=${`${cut ? "Mend" : "Cut"} the link between ${a} and ${b}, which is ${link.state}`}
      onClick=${() => act({do: cut ? "mend" : "cut", nodes: [a, b]}, cut ? "" : `This cuts the link between ${a} and ${b}.`)}
      >${signs[link.state]}</button></td>`;
  };
  return html`
    <section class="card" aria-labelledby="links">
      <div class="card-head"><h2 id="links">Links</h2></div>
      <table class="live-links"><thead><tr><td></td>${names.slice(1).map(n => html`<th scope="col"><code>${n}</code></th>`)}</tr></thead>
        <tbody>${names.slice(0, -1).map((a, i) => html`<tr key=${a}><th scope="row"><code>${a}</code></th>
          ${names.slice(1).map((b, j) => j < i ? html`<td></td>` : cell(a, b))}</tr>`)}</tbody></table>
      <p class="mute live-signs">${Object.entries(signs).map(([name, sign]) => html`<span class=${"link " + name}>${sign}</span> ${name} `)}
        ${own && html`<br/>Press a link to cut or to mend it.`}</p>
    </section>`;
}
