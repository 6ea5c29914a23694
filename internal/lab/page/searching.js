// The search that the explorer makes: its model, how far it is, and how it ended. It goes on while another view is shown.

import {effect, signal} from "./vendor/signals.js";
import {ask} from "./engine.js";
import {address, note, written} from "./address.js";
import {about} from "./store.js";

/** What is searched. @typedef {{protocol: string, flags: Record<string, string>}} Model */

/** The model in the form. @type {import("./vendor/signals.js").Signal<Model | null>} */
export const model = signal(null);

/**
 * The search that runs or ran last. kind is "explore" or "pairs". outcome is the engine's word, or "interrupted".
 * @type {import("./vendor/signals.js").Signal<null | {kind: string, model: Model, stop?: AbortController, progress?: any,
 *     answer?: any, outcome?: string, error?: Error}>}
 */
export const search = signal(null);

/** Whether two models are the same. */
export const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** Starts a search for broken properties or goals, or for runs that look the same. */
export async function start(kind) {
  search.peek()?.stop?.abort();
  const stop = new AbortController();
  const mine = {kind, model: model.peek()};
  const current = () => search.peek()?.stop === stop;
  search.value = {...mine, stop};
  try {
    const answer = await ask({ask: kind, model: mine.model}, {
      signal: stop.signal, onProgress: progress => { if (current()) search.value = {...search.peek(), progress}; },
    });
    if (current()) search.value = {...mine, answer, outcome: answer.outcome, progress: search.peek().progress};
  } catch (error) {
    if (!current()) return;
    const {progress} = search.peek();
    search.value = error.name === "AbortError" ? {...mine, progress, outcome: "interrupted"} : {...mine, error};
  }
}

/** Stops the search. What it found out so far is not an answer. */
export const stop = () => search.peek()?.stop?.abort();

/** The keys of a model in an address. */
const keysOf = ({protocol, flags}) => [["s", protocol], ...Object.entries(flags).sort(([a], [b]) => a < b ? -1 : 1)];

/** The address of a model. */
export const linkTo = m => written("explore", keysOf(m));

// The model follows the address, and the address the model.
effect(() => {
  const {view, keys} = address.value;
  if (view !== "explore" || !about.value) return;
  const {s, ...flags} = Object.fromEntries(keys);
  if (s) model.value = {protocol: s, flags};
  else if (model.peek()) note("explore", keysOf(model.peek()));
  else model.value = {protocol: about.value.protocols[0].name, flags: {}};
});
effect(() => {
  if (model.value) note("explore", keysOf(model.value));
});
