// The bar that moves the cursor: play, steps, a slider with the rounds on it, and where the cursor stands in words.

import {effect, signal} from "../vendor/signals.js";
import {classes, html, number, still, use} from "../lib.js";
import {cursor, events, moveTo, roundAt, run, timeAt} from "../store.js";
import {Icon} from "./icon.js";

/** Whether the run plays. */
export const playing = signal(false);

/** Starts or stops playing. At the end it starts again from the beginning. */
export function play() {
  if (!playing.peek() && cursor.peek() >= events.peek()) moveTo(0);
  playing.value = !playing.peek();
}

const longest = 30_000; // a whole run plays within this time, in milliseconds
const slowest = 140; // between two events

let tick = 0;
effect(() => {
  clearInterval(tick);
  if (!playing.value) return;
  const step = Math.max(still() ? 400 : 50, Math.min(slowest, longest / events.peek()));
  const many = Math.max(1, Math.round(events.peek() * step / longest));
  tick = setInterval(() => {
    moveTo(cursor.peek() + many);
    if (cursor.peek() >= events.peek()) playing.value = false;
  }, step);
});

/** Moves to the beginning of the next round, or of the one before; without rounds, a tenth of the run. */
export function jump(direction) {
  const {rounds} = run.peek().answer ?? {rounds: []};
  const at = cursor.peek(), end = events.peek();
  if (!rounds.length) return moveTo(at + direction * Math.max(1, Math.round(end / 10)));
  const stops = [0, ...rounds.map(r => r.last)];
  moveTo(direction > 0 ? stops.find(s => s > at) ?? end : stops.findLast(s => s < at) ?? 0);
}

/** What the times of a run count. */
export const clockOf = ({answer}) => answer?.stepped ? "step" : "t =";

/** Where the cursor stands, in words. */
export function whereabouts(event, all) {
  const round = roundAt(event);
  return `event ${number(event)} of ${number(all)}` + (round < 0 ? "" : ` · round ${round}`) +
    ` · ${clockOf(run.peek())} ${number(timeAt(event))}`;
}

export function Transport() {
  const at = use(cursor), end = use(events), plays = use(playing);
  const rounds = use(run).answer?.rounds ?? [];
  const button = (name, label, key, act, off) => html`
    <button class="tool" title=${`${label} (${key})`} aria-label=${label} disabled=${off} onClick=${act}>
      <${Icon} name=${name}/></button>`;
  return html`
    <div class="transport" role="group" aria-label="Place in the run">
      <button class="tool primary" title="${plays ? "Pause" : "Play"} (Space)" aria-label=${plays ? "Pause" : "Play"}
        disabled=${!end} onClick=${play}><${Icon} name=${plays ? "pause" : "play"}/></button>
      ${button("first", rounds.length ? "Round before" : "Back by a tenth", "[", () => jump(-1), at === 0)}
      ${button("back", "Event before", "←", () => moveTo(at - 1), at === 0)}
      ${button("next", "Next event", "→", () => moveTo(at + 1), at >= end)}
      ${button("last", rounds.length ? "Next round" : "On by a tenth", "]", () => jump(1), at >= end)}
      <div class="rail">
        <input type="range" min="0" max=${end} value=${at} step="1" aria-label="Event"
          aria-valuetext=${whereabouts(at, end)} onInput=${e => moveTo(Number(e.target.value))}/>
        <svg class="ticks" viewBox="0 0 1000 6" preserveAspectRatio="none" aria-hidden="true">
          ${rounds.slice(0, -1).map(r => html`<line class=${classes({tick: true, passed: r.last <= at})}
            x1=${1000 * r.last / end} x2=${1000 * r.last / end} y1="0" y2="6"/>`)}
        </svg>
      </div>
      <span class="whereabouts">${whereabouts(at, end).split(" · ").map((part, i) => html`${i > 0 && " · "}
        <span>${i ? part : html`<span class="word">event </span>${part.slice(6)}`}</span>`)}</span>
    </div>`;
}
