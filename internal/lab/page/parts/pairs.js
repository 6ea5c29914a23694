// Runs that look the same to a process: the argument that no rule of decision can help, drawn and in words.

import {signal} from "../vendor/signals.js";
import {html, use} from "../lib.js";
import {Drawing} from "./drawing.js";

/** The words at the head of the picture stand beside it already. */
function bare(svg) {
  for (const text of svg.querySelectorAll(".lead, .sublead, .rule")) text.remove();
}

const phone = matchMedia("(max-width: 620px)");
const narrow = signal(phone.matches);
phone.addEventListener("change", () => { narrow.value = phone.matches; });

/** Cuts the picture into its cases, so that a narrow page shows them one below the other. */
function cut(svg) {
  const of = mark => svg.getScreenCTM().inverse().multiply(mark.getScreenCTM());
  const cases = [...svg.querySelectorAll(".case")].map(text => ({text, x: of(text).e, y: of(text).f}));
  const low = Math.max(...[...svg.querySelectorAll(":scope > .rule")].map(rule => rule.y1.baseVal.value));
  const [left, right] = [...new Set(cases.map(c => c.x))].sort((a, b) => a - b);
  if (right === undefined) return bare(svg);
  return cases.map(({text, x, y}) => {
    const piece = /** @type {SVGSVGElement} */ (svg.cloneNode(true));
    const end = Math.min(low, ...cases.map(c => c.y).filter(other => other > y));
    piece.setAttribute("viewBox", `${x - 2} ${y - 2} ${right - left - 30} ${end - y}`);
    piece.setAttribute("aria-label", text.textContent);
    piece.removeAttribute("id");
    piece.removeAttribute("width");
    piece.removeAttribute("height");
    return piece;
  });
}

/** "P2", or "P2 and P3". */
export const toWhom = pairs => [...new Set(pairs.map(p => p.same_to))].join(" and ");

/** @param {{answer: any}} props answer is the engine's answer to "pairs" */
export function Pairs({answer}) {
  const {svg, cases, pairs, verdict} = answer;
  const small = use(narrow);
  if (!pairs.length) return html`<p>${verdict}</p>`;
  const label = pairs.map(p => `${p.same_to} cannot tell ${p.cases.join(" and ").toLowerCase()} apart.`).join(" ") + " " + verdict;
  return html`
    ${svg && html`<${Drawing} key=${small} class=${small ? "in-pieces" : ""} svg=${svg} label=${label} prepare=${small ? cut : bare}/>`}
    ${small && html`<p class="verdict-line">${verdict}</p>`}
    <details class="fold" open=${!svg}><summary>The same in words</summary>
      <div class="cases">${cases.map(c => html`
        <div class="case"><h4>${c.title}</h4><p>${c.about}</p>
          <ul>${c.messages.map(m => html`<li>${m}</li>`)}</ul></div>`)}</div>
      <ul class="musts">${pairs.map(p => html`
        <li><b>${p.same_to}</b> sees the same in ${p.cases.join(" and ").toLowerCase()}: ${p.sees.join("; ")}.
          ${p.must.join(" ")}</li>`)}</ul>
      <p>${verdict}</p></details>`;
}
