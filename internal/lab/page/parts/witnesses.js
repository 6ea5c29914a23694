// The events that show how a property is broken. One press goes to the first event that breaks it.

import {html, use} from "../lib.js";
import {goTo, selection} from "../store.js";

const most = 4; // events beside the first one

/** A button that goes to an event. */
function To({event, says, first}) {
  const here = use(selection) === "e" + event;
  return html`<button class=${first ? "witness first" : "witness"} aria-pressed=${here} onClick=${() => goTo(event)}>
    ${first ? html`<b>First broken at event ${event}</b>` : html`<span class="mute">event ${event}</span>`}: ${says}</button>`;
}

/** @param {{verdict: {witnesses?: {event: number, says: string}[], first_event?: number}}} props */
export function Witnesses({verdict: {witnesses = [], first_event: first = 0}}) {
  const others = witnesses.filter(w => w.event !== first);
  const main = witnesses.find(w => w.event === first);
  return html`<div class="witnesses">
    ${main ? html`<${To} ...${main} first=${true}/>`
      : html`<p class="why">The end of the run shows it${others.length > 0 ? ", after:" : "."}</p>`}
    ${main && others.length > 0 && html`<p class="why">Together with:</p>`}
    ${others.length > 0 && html`<ul>${others.slice(0, most).map(w => html`
      <li key=${w.event}><${To} ...${w}/></li>`)}</ul>`}
    ${others.length > most && html`<p class="why">and ${others.length - most} more.</p>`}</div>`;
}
