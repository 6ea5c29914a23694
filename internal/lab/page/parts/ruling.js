// What the audit says about the last seconds of a cluster that runs. A property that was not put to the test has no
// verdict.

import {capital, html} from "../lib.js";
import {look} from "./verdict.js";

/** @param {{ruling: {verdicts: any[], judged: string, why: string}}} props */
export function Ruling({ruling}) {
  const {verdicts, judged, why} = ruling;
  return html`
    <section class="card verdict ruling-live" aria-labelledby="ruling">
      <div class="card-head"><h2 id="ruling">Verdict</h2><span class="mute">${judged || "nothing is judged now"}</span></div>
      ${why ? html`<p class="mute">${why}</p>` : html`<ul class="verdicts" aria-live="polite">${verdicts.map(v => {
        const [sign, how] = look(v.outcome);
        return html`<li key=${v.property} class=${how}><span class="sign" aria-hidden="true">${sign}</span>
          <div><p><b title=${v.says}>${v.property}</b> ${v.outcome}</p>
            ${v.broken && html`<p class="breach">${capital(v.broken)}</p>`}
            <p class="why">${v.because}</p></div></li>`;
      })}</ul>`}
    </section>`;
}
