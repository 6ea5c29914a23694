// A walk: a run of a model whose moves the reader takes, one by one. The address says the model and the names of the moves:
//
//   #/walk?s=PROTOCOL&n=3&faulty=2&mv=P2-faulty;P1:1,e7-P2,P2-timer65535:1
//
// A move is named by what happens, so a link means the same walk even if more moves become possible.

import {batch, effect, signal} from "./vendor/signals.js";
import {ask} from "./engine.js";
import {address, note, written} from "./address.js";
import {paneOf} from "./shown.js";
import {about} from "./store.js";

/** The model. @type {import("./vendor/signals.js").Signal<import("./searching.js").Model | null>} */
export const model = signal(null);

/** The names of the moves so far. @type {import("./vendor/signals.js").Signal<string[]>} */
export const moves = signal([]);

/**
 * Where the walk is: the engine's answer, or what is wrong.
 * @type {import("./vendor/signals.js").Signal<{answer?: any, error?: Error, busy?: boolean}>}
 */
export const walk = signal({});

/** Random runs from here: the engine's answer and the moves from which they go on. */
export const sample = signal({});

/** The run so far. */
export const pane = paneOf("walk-");

const encoded = name => name.replace(/[%,]/g, encodeURIComponent);

/** The address of a walk. */
export const linkTo = ({protocol, flags}, list = []) => written("walk", keysOf({protocol, flags}, list));

/** @returns {[string, string][]} */
const keysOf = ({protocol, flags}, list) => [["s", protocol], ...Object.entries(flags).sort(([a], [b]) => a < b ? -1 : 1),
  .../** @type {[string, string][]} */ (list.length ? [["mv", list.map(encoded).join(",")]] : [])];

let asking = new AbortController();

/** Goes to where some moves lead; with on, further as long as there is no choice. */
export async function go(list, on = false) {
  asking.abort();
  const {signal: stop} = asking = new AbortController();
  walk.value = {...walk.peek(), busy: true};
  try {
    const answer = await ask({ask: "walk", model: model.peek(), moves: list, ...on && {on}}, {signal: stop});
    const setting = answer.trace && {trace: answer.trace};
    const made = setting ? await ask({ask: "run", run: setting}, {signal: stop}) : undefined;
    if (stop.aborted) return;
    batch(() => {
      moves.value = answer.taken.map(t => t.name).filter(Boolean);
      walk.value = {answer};
      if (sample.peek().from !== moves.peek().join()) sample.value = {};
      pane.run.value = made ? {setting, answer: made} : {};
      pane.cursor.value = made?.report.events ?? 0;
      pane.selection.value = "";
    });
    note("walk", keysOf(model.peek(), moves.peek()));
  } catch (error) {
    if (!stop.aborted) walk.value = {answer: walk.peek().answer, error};
  }
}

/** Takes one more move. */
export const take = name => go([...moves.peek(), name]);

/** Takes the last move back. */
export const undo = () => { if (moves.peek().length) go(moves.peek().slice(0, -1)); };

/** Goes back to a number of moves. */
export const backTo = n => go(moves.peek().slice(0, n));

/** Goes on to the next choice, if only one move is possible. */
export const forward = () => go(moves.peek(), true);

let seed = 0;

/** Makes some random runs from here. */
export async function sampleRuns(count) {
  const from = moves.peek().join();
  sample.value = {from, busy: true};
  try {
    const answer = await ask({ask: "samples", model: model.peek(), moves: moves.peek(), count, seed: ++seed});
    if (sample.peek().from === from) sample.value = {from, answer};
  } catch (error) {
    if (sample.peek().from === from) sample.value = {from, error};
  }
}

effect(() => {
  const {view, keys} = address.value;
  if (view !== "walk" || !about.value) return;
  const {s, mv = "", ...flags} = Object.fromEntries(keys);
  const next = {protocol: s ?? about.value.protocols[0].name, flags};
  if (JSON.stringify(next) !== JSON.stringify(model.peek())) {
    batch(() => {
      model.value = next;
      walk.value = {};
      sample.value = {};
      pane.run.value = {};
    });
  }
  go(mv.split(",").filter(Boolean).map(decodeURIComponent));
});
