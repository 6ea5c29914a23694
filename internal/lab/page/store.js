// What the page shows: one run, one place in it, and one selection. Every view is a function of these, and the address
// of the page says all of them.

import {batch, computed, effect, signal} from "./vendor/signals.js";
import {ask} from "./engine.js";
import {capital, debounced} from "./lib.js";
import {read, write} from "./link.js";
import {traceLink, traceText} from "./traces.js";

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

/** Whose information tree is shown below it, to compare the two; empty for none. */
export const beside = signal("");

/** Whether the tables of messages have a row for each content, and not for each receiver. */
export const byContent = signal(false);

/** Shows the trees that a link names. */
function showTrees(text, owners) {
  const [one, other] = text.split(",").map(name => owners.includes(name) ? name : "");
  owner.value = one;
  beside.value = other === one ? "" : other ?? "";
}

/** The trees as a link names them. */
const treesShown = () => beside.peek()
  ? `${owner.peek() || run.peek().answer?.owner},${beside.peek()}` : owner.peek();

/** The process whose sight is shown; empty for nobody's. */
export const observer = signal("");

/** A sentence for the reader about the link or the run; empty for none. */
export const notice = signal("");

/** Whether the form is open. */
export const editing = signal(false);

/** Whether the run is not that of the form, which cannot make one as it is. */
export const outdated = signal(false);

/** The number of events of the run. */
export const events = computed(() => run.value.answer?.report.events ?? 0);

/** The process with a reference, or undefined. */
export const process = ref => run.value.answer?.processes.find(p => p.ref === ref);

/** The scenario of the gallery with a name, or undefined. */
export const card = name => about.value?.gallery.find(c => c.name === name);

/** What the run is, as a heading. */
export const title = computed(() => {
  const from = place.value?.g && Object.keys(place.value.flags).length === 0 && card(place.value.g);
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

/** The last event that has happened at a time. */
export function eventAt(time, {answer} = run.value) {
  const times = answer?.times ?? [];
  const next = times.findIndex(span => span.time > time);
  return next < 0 ? answer?.report.events ?? 0 : times[next].first - 1;
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
  if (t) return {...traceText(t) ? {trace: traceText(t)} : {kept: t}, ...Object.keys(flags).length > 0 && {flags}};
  const text = y ?? card(g)?.text;
  if (text === undefined) throw new Error(`there is no scenario "${g}" in the gallery`);
  return {scenario: text, flags};
}

let asking = new AbortController();

/**
 * Makes a run and shows it.
 * @param {import("./link.js").Place} next
 * @param {{at?: number | null, sel?: string, of?: string, by?: string, sees?: string, hash?: string}} [there]
 */
export async function open(next, {at = null, sel = "", of = "", by = "", sees = observer.peek(), hash = ""} = {}) {
  asking.abort();
  let setting;
  const nothing = err => batch(() => {
    place.value = null;
    run.value = {};
    view.value = "gallery";
    notice.value = capital(err.message) + ".";
  });
  try {
    setting = settingOf(next);
  } catch (err) {
    return nothing(err);
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
      showTrees(of, answer.owners);
      byContent.value = by === "content";
      observer.value = answer.processes.some(p => p.name === sees && !p.behavior) ? sees : "";
      const made = answer.report.trace_hash;
      notice.value = hash && !made.startsWith(hash)
        ? `This version of Parley makes another run: its trace is ${made.slice(0, 8)}, and that of the link is ${hash}.` : "";
    });
  } catch (error) {
    if (mine.signal.aborted) return;
    if (error.flag === "kept") nothing(error);
    else run.value = {error};
  }
}

/** The fragment of the run, the place in it and the selection. */
export const here = () => write({
  view: "run", place: place.peek(), sel: selection.peek(), of: treesShown(), by: byContent.peek() ? "content" : "",
  sees: observer.peek(),
  at: cursor.peek() === events.peek() ? null : cursor.peek(), hash: run.peek().answer?.report.trace_hash,
});

/** Whether the link to the run works only where its trace file is. */
export const needsFile = computed(() => Boolean(place.value?.t && run.value.answer) && !traceLink(place.value.t));

/** Returns the whole address of what the page shows. If moves make the run, it leads to these. */
export async function link() {
  const t = place.peek()?.t;
  return location.href.replace(/#.*/s, "") + (t && traceLink(t) || await here());
}

// The address that is shown. If it is another one, the reader has followed a link, of which the page has yet to hear.
let shown = location.hash;

/** Puts the place into the address, without a step in the history. */
const keep = debounced(async () => {
  const {answer, busy} = run.peek();
  if (view.peek() !== "run" || !place.peek() || !answer || busy) return;
  const fragment = await here();
  if (view.peek() !== "run" || location.hash !== shown || shown === fragment) return;
  history.replaceState(null, "", fragment);
  shown = fragment;
}, 400);

effect(() => {
  void [cursor.value, selection.value, owner.value, beside.value, byContent.value, observer.value, run.value];
  keep();
});

/** Shows what the address says. */
async function follow() {
  if (location.hash.startsWith("#token=")) return; // until it has become a cookie
  shown = location.hash;
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
      showTrees(got.of, run.peek().answer.owners);
      byContent.value = got.by === "content";
      observer.value = got.sees;
    });
  } else if (to) {
    editing.value = false;
    await open(to, got);
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
  const answer = await ask({ask: "about"});
  const first = await read(location.hash);
  batch(() => { // the gallery is not drawn on the way to another view
    about.value = answer;
    view.value = first.problem ? "gallery" : first.view;
  });
  await follow();
}

/** Shows another run of the form: the address changes without a step in the history. */
export async function change(next) {
  await open(next);
  keep();
}
