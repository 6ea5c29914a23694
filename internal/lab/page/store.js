// What the page shows: one run, one place in it, and one selection. Every view is a function of these, and the address
// of the page says all of them.

import {batch, computed, effect, signal} from "./vendor/signals.js";
import {ask} from "./engine.js";
import {debounced} from "./lib.js";
import {read, write} from "./link.js";
import {traceText} from "./traces.js";

/** The answer to "about": the protocols and the gallery. */
export const about = signal(null);

/** The view: the name of a file in views. */
export const view = signal("");

/** Which run is shown, as a link says it. @type {import("./vendor/signals.js").Signal<import("./link.js").Place|null>} */
export const place = signal(null);

/**
 * The run: its setting as the engine reads it, and the engine's answer. A run that is being made keeps the last answer.
 * @type {import("./vendor/signals.js").Signal<{setting?: object, answer?: any, error?: Error, busy?: boolean}>}
 */
export const run = signal({});

/** How many events have happened, from 0 to the number of events. */
export const cursor = signal(0);

/** The reference of what is selected, such as e147, P2/1.5 or r1/P5/P2; empty for nothing. */
export const selection = signal("");

/** Whose information tree is shown; empty for the first one. */
export const owner = signal("");

/** The process whose sight is shown; empty for nobody's. */
export const observer = signal("");

/** A sentence for the reader about the link or the run; empty for none. */
export const notice = signal("");

/** Whether the form is open. */
export const editing = signal(false);

/** The number of events of the run. */
export const events = computed(() => run.value.answer?.report.events ?? 0);

/** The process with a reference, or undefined. */
export const process = ref => run.value.answer?.processes.find(p => p.ref === ref);

/** The scenario of the gallery with a name, or undefined. */
export const card = name => about.value?.gallery.find(c => c.name === name);

/** What the run is, as a heading. */
export const title = computed(() => {
  const from = place.value?.g && card(place.value.g);
  return from ? from.shows : run.value.answer?.report.title ?? "Run";
});

/** The name of a process that a reference shows, whatever processes are called. */
export const named = ref => process(ref)?.name ?? ref;

/** The number of the round in which an event happens, or -1. */
export function roundAt(event, {answer} = run.value) {
  return answer?.rounds.findLast(r => r.first <= Math.max(event, 1))?.number ?? -1;
}

/** The time at which an event happens. */
export function timeAt(event, {answer} = run.value) {
  const times = answer?.times ?? [];
  let low = 0, high = times.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle].first <= event) low = middle;
    else high = middle;
  }
  return times[low]?.time ?? 0;
}

/** Moves the cursor, within the run. */
export function moveTo(event) {
  cursor.value = Math.max(0, Math.min(events.value, Math.trunc(event)));
}

/** Selects what a reference shows; selecting it again clears the selection. */
export function select(ref) {
  selection.value = ref === selection.peek() ? "" : ref;
}

/** Selects an event and moves the cursor to it. */
export function goTo(event) {
  batch(() => {
    moveTo(event);
    selection.value = "e" + event;
  });
}

/** What the engine should run for a place. A scenario or a trace that the page does not have is an error. */
export function settingOf({s, g, y, t, flags}) {
  if (s) return {protocol: s, flags};
  if (t) return {trace: traceText(t)};
  const text = y ?? card(g)?.text;
  if (text === undefined) throw new Error(`There is no scenario "${g}" in the gallery.`);
  return {scenario: text, flags};
}

let asking = new AbortController();

/**
 * Makes a run and shows it.
 * @param {import("./link.js").Place} next
 * @param {{at?: number | null, sel?: string, of?: string, sees?: string, hash?: string}} [there]
 */
export async function open(next, {at = null, sel = "", of = "", sees = observer.peek(), hash = ""} = {}) {
  asking.abort();
  let setting;
  try {
    setting = settingOf(next);
  } catch (err) {
    batch(() => {
      place.value = null;
      run.value = {};
      view.value = "gallery";
      notice.value = err.message;
    });
    return;
  }
  const mine = asking = new AbortController();
  place.value = next;
  run.value = {...run.peek(), busy: true, error: undefined};
  try {
    const answer = await ask({ask: "run", run: setting}, {signal: mine.signal});
    if (mine.signal.aborted) return;
    const end = answer.report.events;
    batch(() => {
      run.value = {setting, answer};
      cursor.value = Math.min(at ?? end, end);
      selection.value = sel;
      owner.value = answer.owners.includes(of) ? of : "";
      observer.value = answer.processes.some(p => p.name === sees && !p.behavior) ? sees : "";
      const made = answer.report.trace_hash;
      notice.value = hash && !made.startsWith(hash)
        ? `This version of Parley makes another run: its trace is ${made.slice(0, 8)}, and that of the link is ${hash}.` : "";
    });
  } catch (error) {
    if (!mine.signal.aborted) run.value = {error};
  }
}

/** The fragment of the run, the place in it and the selection. */
export const here = () => write({
  view: "run", place: place.peek(), sel: selection.peek(), of: owner.peek(), sees: observer.peek(),
  at: cursor.peek() === events.peek() ? null : cursor.peek(), hash: run.peek().answer?.report.trace_hash,
});

/** Returns the whole address of what the page shows. */
export async function link() {
  return location.href.replace(/#.*/s, "") + await here();
}

/** Puts the place into the address, without a step in the history. */
const keep = debounced(async () => {
  const {answer, busy} = run.peek();
  if (view.peek() !== "run" || !place.peek() || !answer || busy) return;
  const fragment = await here();
  if (view.peek() !== "run" || location.hash === fragment) return;
  history.replaceState(null, "", fragment);
}, 400);

effect(() => {
  void [cursor.value, selection.value, owner.value, observer.value, run.value];
  keep();
});

/** Shows what the address says. */
async function follow() {
  if (location.hash.startsWith("#token=")) return; // until it has become a cookie
  const got = await read(location.hash);
  if (!about.peek()) return;
  batch(() => {
    notice.value = got.problem;
    view.value = got.problem ? "gallery" : got.view;
  });
  if (got.view !== "run") return;
  const to = got.place ?? (got.problem ? null : place.peek());
  if (to && JSON.stringify(to) === JSON.stringify(place.peek()) && run.peek().answer && !run.peek().busy) {
    batch(() => {
      moveTo(got.at ?? events.peek());
      selection.value = got.sel;
      owner.value = got.of;
      observer.value = got.sees;
    });
  } else if (to) {
    editing.value = false;
    await open(to, {at: got.at, sel: got.sel, of: got.of, sees: got.sees, hash: got.hash});
  } else if (!got.problem) {
    editing.value = true;
    await open({s: about.peek().protocols[0].name, flags: {}});
  }
}

addEventListener("hashchange", follow);

/** Goes to an address of the page, even if it is the same: what it leads to may be there only now. */
export function visit(fragment) {
  if (location.hash === fragment) return follow();
  location.hash = fragment;
}

/** Loads what there is to see, and then shows what the address says. */
export async function begin() {
  about.value = await ask({ask: "about"});
  await follow();
}

/** Shows another run of the form: the address changes without a step in the history. */
export async function change(next) {
  await open(next);
  keep();
}
