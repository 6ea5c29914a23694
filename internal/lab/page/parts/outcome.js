// What came of the traitor's messages: who decided what, whether the property broke, and the theorem behind it.

import {capital, classes, html, useAnswer, useEffect, useState} from "../lib.js";
import {write} from "../link.js";
import {linkTo} from "../game.js";
import {Copy} from "./export.js";
import {Pairs, toWhom} from "./pairs.js";

/** A link to a run. */
function Open({setting}) {
  const [to, lead] = useState("");
  useEffect(() => {
    let current = true;
    write({view: "run", place: {s: setting.protocol, flags: setting.flags}}).then(link => current && lead(link));
    return () => { current = false; };
  }, [JSON.stringify(setting)]);
  return html`<a class="button" href=${to}>Open this run</a>`;
}

/** The verdict on the property of a level. */
export const verdictOf = (answer, level) => answer.report.verdicts.find(v => v.property === level.property);

/** @param {{level: any, setting: object, answer: any, sent: boolean}} props */
export function Outcome({level, setting, answer, sent}) {
  if (!sent || !answer) {
    return html`
      <section class="card outcome" aria-labelledby="outcome"><div class="card-head"><h2 id="outcome">What came of it</h2></div>
        <p class="mute">${level.seats?.length ? "The correct processes decide after the last round: close the rounds to see how."
          : "Choose, and see what the others do."}</p></section>`;
  }
  const verdict = verdictOf(answer, level), broken = Boolean(verdict?.broken);
  const faulty = answer.processes.filter(p => p.faulty).map(p => p.name);
  return html`
    <section class="card outcome" aria-labelledby="outcome">
      <div class="card-head"><h2 id="outcome" tabindex="-1">What came of it</h2></div>
      <div class="chips">${answer.processes.map(p => html`
        <span class=${classes({chip: true, faulty: p.faulty})}>${p.name}
          ${p.faulty ? html` <span class="mute">${level.seats?.includes(p.name) ? "you" : "faulty"}</span><span class="sign">✗</span>`
            : p.decides ? html` <span class="mute">${p.source && level.seats?.length ? "loyal, sent" : "decides"}</span>
              <b>${p.decides}</b>`
              : html` <span class="mute">decides nothing</span>`}</span>`)}</div>
      <div class=${classes({ruling: true, broken})} role="status">
        <p><span class=${broken ? "sign" : "sign ok"} aria-hidden="true">${broken ? "✗" : "✓"}</span>
          <b>${capital(level.property)} ${broken ? "is broken" : "holds"}.</b> ${broken && capital(verdict.broken) + "."}</p>
        ${broken ? html`<p class="why">Not promised here: ${verdict.because}.</p>`
          : html`<p class="why">${capital(level.property)} demands: ${verdict?.says}.
            ${" "}${faulty.length > 0 && `${level.seats?.length ? "What was sent" : "Your plan"} did not change that.`}</p>
            <p>${again(level)}</p>`}</div>
      <div class="row-of-buttons"><${Open} setting=${setting}/></div>
      <p class="again"><span class="mute">The same again:</span> <code>${answer.command}</code>
        ${" "}<${Copy} text=${answer.command} label="Copy"/></p>
    </section>`;
}

/** What to do after a game that broke nothing. */
const again = level => level.can ? "You did not break it. Choose something else and try again, or press “Break it for me”."
  : level.proof === "search" ? "You did not break it. Try again, or let the engine try everything: press “Prove it”."
    : "You did not break it. Try again, or let the engine make many runs.";

/** The end of a level: the theorem, and the way to the next level. */
export function Theorem({level, next, how}) {
  return html`
    <section class="card theorem-card" aria-labelledby="theorem">
      <div class="card-head"><h2 id="theorem">${titles[how] ?? titles.won}</h2></div>
      <p>${level.theorem}</p>
      ${next && html`<p class="row-of-buttons"><a class="button primary" href=${linkTo(next.id)}>Next: ${next.title}</a></p>`}
    </section>`;
}

const titles = {won: "You did it", shown: "It can be done", proven: "Nobody can do it", sampled: "Not found"};

/** The runs that look the same, for levels that have such an argument. */
export function Apart({level}) {
  const got = useAnswer(level.pairs ? {ask: "pairs", model: {protocol: level.protocol, flags: level.pairs}} : null);
  if (!level.pairs || got.error) return null;
  const pairs = got.answer?.pairs ?? [];
  return html`
    <section class="card apart" aria-labelledby="apart">
      <div class="card-head"><h2 id="apart">What can ${toWhom(pairs) || "the correct processes"} tell apart?</h2>
        ${pairs.length > 0 && html`<span class="mute">n = ${got.answer.n}, m = ${got.answer.m}</span>`}</div>
      ${got.answer ? pairs.length ? html`<${Pairs} answer=${got.answer}/>`
        : html`<p>No two runs look the same to a correct process that must decide differently in them: all were compared.
          So a rule of decision can exist, and ${level.protocol} is one.</p>`
        : html`<p class="mute">Comparing runs …</p>`}
    </section>`;
}
