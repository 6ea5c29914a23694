// The traitor's game: which level is played, what the traitor sends in it, and which levels are done.

import {effect, signal} from "./vendor/signals.js";
import {address, note, written} from "./address.js";

/**
 * Where a game stands. Moves are those of each seat, as the engine writes them: ROUND-RECEIVER-CHOICE-ANSWER. round is
 * the one that is played now; null: all are sent. set has the choice of each dial. helped: the moves are the engine's.
 * @typedef {{level: string, moves: Record<string, string[]>, round: number | null, set: Record<string, string>,
 *     helped?: boolean}} Game
 */

/** The levels. @type {import("./vendor/signals.js").Signal<any[]>} */
export const levels = signal([]);

/** The game that is played. @type {import("./vendor/signals.js").Signal<Game | null>} */
export const game = signal(null);

const key = "parley-levels";

/** How levels were done: won, shown by the engine, not found in many runs, or proven.
 * @type {import("./vendor/signals.js").Signal<Record<string, string>>} */
export const done = signal(stored());

function stored() {
  try {
    const known = JSON.parse(localStorage.getItem(key) ?? "{}");
    return typeof known === "object" && known ? known : {};
  } catch {
    return {};
  }
}

/** The games before it, to undo. @type {import("./vendor/signals.js").Signal<Game[]>} */
export const past = signal([]);

/** The level of the game. */
export const levelOf = g => levels.value.find(l => l.id === g?.level);

const first = -1; // a round before all others: the first one with a choice is played

/** A new game. */
const fresh = level => ({level, moves: {}, round: first, set: {}});

/** Plays on: the game before can be had back. */
export function act(changes) {
  past.value = [...past.peek(), game.peek()];
  game.value = {...game.peek(), ...changes};
}

export function undo() {
  if (!past.peek().length) return;
  game.value = past.peek().at(-1);
  past.value = past.peek().slice(0, -1);
}

export const startOver = () => act(fresh(game.peek().level));

/** The moves of a seat with the answer to one choice. An answer of 0 is honest, and needs no move. */
export function answered(moves, move) {
  const choice = move.replace(/\d+$/, "");
  const others = moves.filter(m => m.replace(/\d+$/, "") !== choice);
  return move.endsWith("-0") ? others : [...others, move];
}

/** The run of a game, as a setting for the engine. */
export function settingOf({moves, set}, level) {
  const flags = {...level.flags};
  if (level.seats?.length) {
    flags.faulty = level.seats.map(seat => `${seat.slice(1)}=moves:${(moves[seat] ?? []).join(".")}`).join(",");
  }
  for (const dial of level.dials ?? []) if (set[dial.name]) flags[dial.flag] = dial.form.replace("%", set[dial.name]);
  return {protocol: level.protocol, flags};
}

/** The moves in a flag "faulty", such as 2=moves:1-3-0-1. */
export function movesIn(flag) {
  const moves = {};
  for (const [, seat, list] of flag.matchAll(/(\d+)=moves:([\d.-]*)/g)) moves["P" + seat] = list.split(".").filter(Boolean);
  return moves;
}

/** The choices of dials in the flags of a run. */
export const dialsIn = (flags, level) => Object.fromEntries((level.dials ?? []).map(dial =>
  [dial.name, dial.choices.find(c => dial.form.replace("%", c.value) === flags[dial.flag])?.value ?? ""]));

/** The keys of a game in the address. */
function* keysOf({level, moves, round, set}) {
  yield ["level", level];
  const made = Object.entries(moves).filter(([, list]) => list.length);
  if (made.length || round === null) yield ["moves", made.map(([seat, list]) => `${seat}:${list.join(".")}`).join(",") || "honest"];
  if (round !== null && (round !== first || made.length)) yield ["round", String(Math.max(0, round))];
  for (const [name, value] of Object.entries(set)) if (value) yield [name, value];
}

/** The address of a level. */
export const linkTo = level => written("traitor", [["level", level]]);

/** Reads a game from the address. A part that makes no sense is left out. */
function read({keys}) {
  const level = levels.peek().find(l => l.id === keys.get("level")) ?? levels.peek().find(l => !done.peek()[l.id]) ?? levels.peek()[0];
  const g = fresh(level.id);
  for (const part of (keys.get("moves") ?? "").split(",")) {
    const [seat, list = ""] = part.split(":");
    if (level.seats?.includes(seat)) g.moves[seat] = list.split(".").filter(m => /^\d+-\d+-\d+-\d+$/.test(m));
  }
  for (const dial of level.dials ?? []) {
    if (dial.choices.some(c => c.value === keys.get(dial.name))) g.set[dial.name] = keys.get(dial.name);
  }
  if (keys.has("round")) g.round = Math.max(first, Math.trunc(Number(keys.get("round")))) || 0;
  else if (keys.has("moves")) g.round = null;
  return g;
}

// The game follows the address, and the address the game.
effect(() => {
  const to = address.value;
  if (to.view !== "traitor" || !levels.value.length) return;
  if (!to.keys.has("level") && game.peek()) return note("traitor", keysOf(game.peek())); // back from another view
  game.value = read(to);
  past.value = [];
});
effect(() => {
  if (game.value) note("traitor", keysOf(game.value));
});

const worth = ["shown", "won", "sampled", "proven"];

/** Notes that a level is done. What was won stays won. */
export function finish(level, how) {
  if (worth.indexOf(done.peek()[level]) >= worth.indexOf(how)) return;
  done.value = {...done.peek(), [level]: how};
  try { localStorage.setItem(key, JSON.stringify(done.peek())); } catch { /* it lasts until the page is closed */ }
}

/** Forgets all that was done. */
export function forget() {
  done.value = {};
  try { localStorage.removeItem(key); } catch { /* nothing was kept */ }
}
