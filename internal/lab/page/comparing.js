// Two runs side by side: their addresses, a pane for each, and where they differ. The address is
//
//   #/compare?a=s:PROTOCOL;n:3;f:1:twofaced&b=s:PROTOCOL;n:3;f:3:flip&at=13&show=story&joined=no
//
// a and b are places as link.js packs them. at is the cursor of the first run, unless it is at the first difference. show
// is what both show, and joined=no separates the cursors.

import {batch, effect, signal} from "./vendor/signals.js";
import {ask} from "./engine.js";
import {debounced} from "./lib.js";
import {address, note, written} from "./address.js";
import {pack, unpack} from "./link.js";
import {paneOf} from "./shown.js";
import {about, place, settingOf, timeAt} from "./store.js";

/** @typedef {import("./link.js").Place} Place */

/** The two runs. b is null until it is chosen. @type {import("./vendor/signals.js").Signal<null | {a: Place, b: Place | null}>} */
export const pair = signal(null);

/** Where they differ: the engine's answer, or what is wrong. @type {import("./vendor/signals.js").Signal<{answer?: any, error?: Error}>} */
export const difference = signal({});

/** What both panes show: the name of a picture, story, messages or state; empty for the first picture. */
export const show = signal("");

/** Whether the cursor of one run moves with that of the other. */
export const joined = signal(true);

/** The last event at or before a time. */
function eventAt(time, {answer}) {
  const next = answer.times.find(t => t.time > time);
  return next ? next.first - 1 : answer.report.events;
}

/** The place in the other run: the same event as long as the runs are equal, and then the same time. */
function partner(at, mine, other) {
  const equal = difference.peek().answer?.equal ?? 0;
  if (at <= equal) return at;
  if (at >= mine.events.peek()) return other.events.peek();
  return Math.max(equal, eventAt(timeAt(at, mine.run.peek()), other.run.peek()));
}

/** A pane whose cursor and selection the other pane follows. */
function half(i) {
  const own = paneOf(i ? "b-" : "a-");
  const follow = () => {
    const other = panes[1 - i];
    if (joined.peek() && other.run.peek().answer) other.cursor.value = partner(own.cursor.peek(), own, other);
  };
  return {
    ...own,
    moveTo(event) {
      own.moveTo(event);
      follow();
    },
    goTo(event) {
      own.goTo(event);
      follow();
    },
    select(ref) {
      own.select(ref);
      const other = panes[1 - i], now = own.selection.peek();
      const [, event] = /^e(\d+)$/.exec(now) ?? [];
      if (joined.peek()) other.selection.value = event && Number(event) > (difference.peek().answer?.equal ?? 0) ? "" : now;
    },
  };
}

/** @type {import("./shown.js").Shown[]} */
export const panes = [half(0), half(1)];

/** Moves each run to its first event that differs, and selects it. */
export function toDifference() {
  const {first = []} = difference.peek().answer ?? {};
  batch(() => panes.forEach((pane, i) => {
    const event = first[i]?.event;
    pane.cursor.value = event ?? pane.events.peek();
    pane.selection.value = event ? "e" + event : "";
  }));
}

/** Shows what a process sees first that differs; lines has an event of each run, or null. */
export function toSights(lines) {
  batch(() => panes.forEach((pane, i) => {
    pane.cursor.value = lines[i]?.event ?? pane.events.peek();
    pane.selection.value = lines[i] ? "e" + lines[i].event : "";
  }));
}

let asking = new AbortController();

/** Makes both runs and compares them, unless the signal comes. */
async function load({a, b}, at, stop) {
  difference.value = {};
  try {
    const settings = [a, b].filter(Boolean).map(settingOf);
    const answers = await Promise.all(settings.map(run => ask({ask: "run", run}, {signal: stop})));
    const answer = b ? await ask({ask: "compare", a: settings[0], b: settings[1]}, {signal: stop}) : undefined;
    if (stop.aborted) return;
    batch(() => {
      panes.forEach((pane, i) => {
        pane.run.value = answers[i] ? {setting: settings[i], answer: answers[i]} : {};
        pane.cursor.value = answers[i]?.report.events ?? 0;
        pane.selection.value = "";
      });
      difference.value = {answer};
      if (at === null) toDifference();
      else panes[0].moveTo(at);
    });
  } catch (error) {
    if (!stop.aborted) difference.value = {error};
  }
}

/** The address of a comparison. */
export const linkTo = async (a, b) =>
  written("compare", /** @type {[string, string][]} */ ([["a", await pack(a)], ...b ? [["b", await pack(b)]] : []]));

/** Puts what is shown into the address. */
const keep = debounced(async () => {
  const now = pair.peek();
  if (!now || !difference.peek().answer) return;
  const keys = [["a", await pack(now.a)], ["b", await pack(now.b)]];
  if (pair.peek() !== now || !difference.peek().answer) return;
  const {first} = difference.peek().answer;
  if (panes[0].cursor.peek() !== (first[0]?.event ?? panes[0].events.peek())) keys.push(["at", String(panes[0].cursor.peek())]);
  if (show.peek()) keys.push(["show", show.peek()]);
  if (!joined.peek()) keys.push(["joined", "no"]);
  note("compare", /** @type {[string, string][]} */ (keys));
}, 400);

effect(() => {
  void [panes[0].cursor.value, show.value, joined.value, difference.value];
  keep();
});

effect(() => {
  const {view, keys} = address.value;
  if (view !== "compare" || !about.value) return;
  read(keys);
});

/** Shows what an address says. What an earlier one said, and was not shown yet, is withdrawn. */
async function read(keys) {
  asking.abort();
  const {signal: stop} = asking = new AbortController();
  try {
    const a = await unpack(keys.get("a") ?? ""), b = await unpack(keys.get("b") ?? "");
    if (stop.aborted) return;
    if (!a) throw new Error("The link names no run. Open a run, and compare it with another one from there.");
    const at = keys.has("at") ? Number(keys.get("at")) || 0 : null;
    batch(() => {
      pair.value = {a, b};
      show.value = keys.get("show") ?? "";
      joined.value = keys.get("joined") !== "no";
    });
    await load({a, b}, at, stop);
  } catch (error) {
    if (stop.aborted) return;
    batch(() => {
      pair.value = null;
      difference.value = {error};
    });
  }
}

/** The run that was opened before the one of the store. @type {import("./vendor/signals.js").Signal<Place | null>} */
export const before = signal(null);
let latest = null;
effect(() => {
  const now = place.value;
  if (!now || JSON.stringify(now) === JSON.stringify(latest)) return;
  before.value = latest;
  latest = now;
});
