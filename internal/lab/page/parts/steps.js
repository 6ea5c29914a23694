// A small bar that moves the cursor of one pane, for views that show several.

import {classes, html, number, use} from "../lib.js";
import {useShown} from "../shown.js";
import {roundAt, timeAt} from "../store.js";
import {Icon} from "./icon.js";
import {clockOf} from "./transport.js";

/** Where a cursor stands, in words. */
const whereabouts = (at, end, run) => {
  const round = roundAt(at, run);
  return `event ${number(at)} of ${number(end)}${round < 0 ? "" : ` · round ${round}`} · ${clockOf(run)} ${number(timeAt(at, run))}`;
};

/**
 * @param {{label: string, mark?: number}} props mark is an event that the bar marks, such as the first one that differs
 */
export function Steps({label, mark = 0}) {
  const {run, cursor, events, moveTo} = useShown();
  const at = use(cursor), end = use(events), made = use(run);
  const words = whereabouts(at, end, made);
  return html`
    <div class="steps" role="group" aria-label=${label}>
      <button class="tool" aria-label="Event before" title="Event before (←)" disabled=${at === 0} onClick=${() => moveTo(at - 1)}>
        <${Icon} name="back"/></button>
      <button class="tool" aria-label="Next event" title="Next event (→)" disabled=${at >= end} onClick=${() => moveTo(at + 1)}>
        <${Icon} name="next"/></button>
      <div class="rail">
        <input type="range" min="0" max=${end} value=${at} step="1" aria-label=${`Event, ${label}`} aria-valuetext=${words}
          onInput=${e => moveTo(Number(e.target.value))}/>
        <svg class="ticks" viewBox="0 0 1000 6" preserveAspectRatio="none" aria-hidden="true">
          ${mark > 0 && end > 0 && html`<line class=${classes({tick: true, differs: true})} x1=${1000 * mark / end}
            x2=${1000 * mark / end} y1="0" y2="6"/>`}</svg>
      </div>
      <span class="whereabouts">${words}</span>
    </div>`;
}
