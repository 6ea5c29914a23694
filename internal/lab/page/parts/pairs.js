// Runs that look the same to a process: the argument that no rule of decision can help, drawn and in words.

import {html} from "../lib.js";
import {Drawing} from "./drawing.js";

/** The words at the head of the picture stand beside it already. */
const bare = svg => {
  for (const text of svg.querySelectorAll(".lead, .sublead, .rule")) text.remove();
};

/** "P2", or "P2 and P3". */
export const toWhom = pairs => [...new Set(pairs.map(p => p.same_to))].join(" and ");

/** @param {{answer: any}} props answer is the engine's answer to "pairs" */
export function Pairs({answer}) {
  const {svg, cases, pairs, verdict} = answer;
  if (!pairs.length) return html`<p>${verdict}</p>`;
  const label = pairs.map(p => `${p.same_to} cannot tell ${p.cases.join(" and ").toLowerCase()} apart.`).join(" ") + " " + verdict;
  return html`
    ${svg && html`<${Drawing} class="pairs-picture" svg=${svg} label=${label} prepare=${bare}/>`}
    <details class="fold" open=${!svg}><summary>The same in words</summary>
      <div class="cases">${cases.map(c => html`
        <div class="case"><h4>${c.title}</h4><p>${c.about}</p>
          <ul>${c.messages.map(m => html`<li>${m}</li>`)}</ul></div>`)}</div>
      <ul class="musts">${pairs.map(p => html`
        <li><b>${p.same_to}</b> sees the same in ${p.cases.join(" and ").toLowerCase()}: ${p.sees.join("; ")}.
          ${p.must.join(" ")}</li>`)}</ul>
      <p>${verdict}</p></details>`;
}
