// The argument that a process cannot know enough, whatever its rule of decision: runs with any lies that look the same to it.

import {capital, html, use, useAnswer} from "../lib.js";
import {arguing, knowledge} from "../knowing.js";
import {Pairs, toWhom} from "./pairs.js";

/** The card with the argument, while it is asked for. */
export function Argument() {
  const asked = use(arguing), {answer: known} = use(knowledge);
  const model = asked && known?.model;
  const got = useAnswer(model ? {ask: "pairs", model} : null);
  if (!model) return null;
  const {pairs = []} = got.answer ?? {};
  return html`
    <section class="card argument" aria-labelledby="argument">
      <div class="card-head"><h2 id="argument" tabindex="-1">What can ${toWhom(pairs) || "correct processes"} tell apart?</h2>
        <button onClick=${() => { arguing.value = false; }}>Close</button></div>
      ${got.error ? html`<p class="wrong">${capital(got.error.message)}</p>`
        : got.answer ? pairs.length ? html`<${Pairs} answer=${got.answer}/>` : html`<p>${capital(got.answer.verdict)}</p>`
        : html`<p class="mute" role="status">Comparing runs with all lies …</p>`}
    </section>`;
}
