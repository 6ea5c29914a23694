// The keys of the page. They work wherever no field and no table takes them.

import {signal} from "./vendor/signals.js";
import {cursor, events, goTo, moveTo, run, select, selection, view} from "./store.js";
import {parse} from "./selection.js";
import {jump, play} from "./parts/transport.js";
import {remembered} from "./lib.js";

/** Whether the list of keys is shown. */
export const helping = signal(false);

/** What each key does, for the list. */
export const list = [
  ["← →", "event before, next event"], ["[ ]", "round before, next round"], ["Home End", "beginning, end"],
  ["Space", "play, pause"], ["c", "to the cause of the selected event"], ["e", "to its first effect"],
  ["1 … 9", "select a process"], ["Esc", "clear the selection"], ["?", "this list"],
  ["1 … 9", "in a walk: take a move"], ["↓ Enter", "in a walk: to the moves, and take one"],
  ["Backspace", "in a walk: take the last move back"], ["→", "in a walk: on to the next choice"],
  ["← →", "in a comparison: move both runs"],
];

/** Goes from the selected event, or from the one at the cursor, to another that it is connected with. */
async function follow(which) {
  const ref = selection.peek();
  const {setting} = run.peek();
  const parts = parse(ref);
  let event = parts.kind === "event" ? parts.event : cursor.peek();
  if (parts.kind === "message") {
    const {tables} = await remembered(JSON.stringify({ask: "tables", run: setting}));
    const cell = tables.flatMap(t => t.cells.flat()).find(c => c.ref === ref);
    event = cell ? cell.until || cell.since : event; // its arrival, whose cause is its sending
  }
  if (!event) return;
  const answer = await remembered(JSON.stringify({ask: "event", event, run: setting}));
  const next = which === "causes" ? answer.causes.at(-1) : answer.effects[0];
  if (next) goTo(next.event);
}

const keys = {
  ArrowLeft: () => moveTo(cursor.peek() - 1), ArrowRight: () => moveTo(cursor.peek() + 1),
  "[": () => jump(-1), "]": () => jump(1), Home: () => moveTo(0), End: () => moveTo(events.peek()),
  " ": play, c: () => follow("causes"), e: () => follow("effects"),
};

addEventListener("keydown", event => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  const target = /** @type {HTMLElement} */ (event.target);
  const takes = target.closest("input, select, textarea, dialog");
  const slider = takes instanceof HTMLInputElement && takes.type === "range";
  if (takes && !slider) return;
  if (event.key === "?") {
    helping.value = true;
    return event.preventDefault();
  }
  if (view.peek() !== "run" || !run.peek().answer) return;
  if (event.key === "Escape") return void (selection.value = "");
  if (/^[1-9]$/.test(event.key)) {
    const process = run.peek().answer.processes[Number(event.key) - 1];
    if (process) select(process.ref);
    return;
  }
  const act = keys[event.key];
  // A slider moves itself, and Space presses a button that has the focus.
  if (!act || slider && /^(Arrow|Home|End)/.test(event.key)) return;
  if (event.key === " " && target.closest("button, summary, a")) return;
  event.preventDefault();
  Promise.resolve(act()).catch(() => {}); // a withdrawn question
});
