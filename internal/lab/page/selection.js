// What belongs together: a message, the cell of the table, the node that it filled, and its events in the story have
// different references. These functions find all that show the same as one reference.

import {effect, signal} from "./vendor/signals.js";
import {use, useAnswer, useRef} from "./lib.js";
import {useShown} from "./shown.js";
import {selection} from "./store.js";

/** The event whose past and future stand out in the pictures; 0 for none. */
export const coneOf = signal(0);

effect(() => {
  void selection.value;
  coneOf.value = 0;
});

/**
 * A reference in parts.
 * @typedef {{kind: "event", event: number} | {kind: "process"} | {kind: "round", round: number} |
 *     {kind: "sender", round: number, from: string} | {kind: "message", round: number, from: string, to: string} |
 *     {kind: "node", of: string, path: string[]} | {kind: "none"}} Ref
 */

/**
 * Reads a reference.
 * @param {string} ref
 * @returns {Ref}
 */
export function parse(ref) {
  const [head, second, third] = ref.split("/");
  if (/^e\d+$/.test(head)) return {kind: "event", event: Number(head.slice(1))};
  if (/^r\d+$/.test(head)) {
    const round = Number(head.slice(1));
    if (third) return {kind: "message", round, from: second, to: third};
    return second ? {kind: "sender", round, from: second} : {kind: "round", round};
  }
  if (/^P\d+$/.test(head)) {
    if (!second) return {kind: "process"};
    if (/^\d+(\.\d+)*$/.test(second)) return {kind: "node", of: head, path: second.split(".")};
  }
  return {kind: "none"};
}

/** The message that filled a node: of the round of its rank, from the last process of its path. */
export const filledBy = ({of, path}) => `r${path.length - 1}/P${path.at(-1)}/${of}`;

/**
 * Returns a test whether a mark shows the same as the selection. Marks are compared by their references.
 * @param {string} ref the selection
 * @param {string} [shown] the reference under which pictures and tables show a selected event
 * @returns {(ref: string) => boolean}
 */
export function matcher(ref, shown = "") {
  if (!ref) return () => false;
  const main = shown || ref;
  const selected = parse(main);
  const same = new Set([ref, main]);
  if (selected.kind === "node") same.add(filledBy(selected));
  return other => {
    if (same.has(other)) return true;
    const o = parse(other);
    if (selected.kind === "message" && o.kind === "node") return filledBy(o) === main;
    return selected.kind === "sender" && o.kind === "message" && other.startsWith(main + "/");
  };
}

/** The selected event in words, with its causes and effects, or undefined while there is none. */
export function useEvent() {
  const {run, selection} = useShown();
  const ref = use(selection);
  const {setting, answer} = use(run);
  const parsed = parse(ref);
  const known = parsed.kind === "event" && answer && parsed.event >= 1 && parsed.event <= answer.report.events;
  const got = useAnswer(known ? {ask: "event", event: parsed.event, run: setting} : null);
  return got.answer?.event === parsed.event ? got.answer : undefined;
}

/** The references of the events that led to the selected one, and of those that it caused. */
export function useLinked() {
  const event = useEvent();
  const near = event ? [...event.causes, ...event.effects] : [];
  return new Set(near.map(line => line.ref).filter(ref => ref !== event.ref && parse(ref).kind !== "process"));
}

/** The references of what may have influenced the event of the cone, or been influenced by it; null while there is none. */
export function useCone() {
  const {id, run} = useShown();
  const event = use(coneOf) * Number(!id); // it is an event of the run of the store
  const {setting} = use(run);
  const {answer} = useAnswer(event && setting ? {ask: "cone", event, run: setting} : null);
  const seen = useRef({});
  if (seen.current.answer !== answer) seen.current = {answer, refs: answer && new Set([...answer.past, ...answer.future])};
  return event && answer ? seen.current.refs : null;
}

const last = new WeakMap(); // by what is shown

/** The test whether a mark shows the same as what is selected; the same function as long as the selection is the same. */
export function useMatcher() {
  const shown = useShown();
  const ref = use(shown.selection), as = useEvent()?.ref ?? "";
  const key = ref + " " + as;
  if (last.get(shown)?.key !== key) last.set(shown, {key, test: matcher(ref, as)});
  return last.get(shown).test;
}
