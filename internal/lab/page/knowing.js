// What one process of the run sees: its own events. All other marks are faint then. The engine also says which other runs
// look the same to the process up to the cursor.

import {effect, signal} from "./vendor/signals.js";
import {ask} from "./engine.js";
import {debounced, use} from "./lib.js";
import {useShown} from "./shown.js";
import {cursor, observer, run} from "./store.js";

/**
 * The engine's answer for the observer.
 * @type {import("./vendor/signals.js").Signal<{answer?: any, error?: Error, sees?: (ref: string, since?: string) => boolean}>}
 */
export const knowledge = signal({});

/** Whether the argument about all lies is shown. */
export const arguing = signal(false);

/** The test whether the observer sees a mark with a reference, which begins with an event. */
function sightOf({ref: of, marks}) {
  const seen = new Set(marks);
  return (ref, since) => {
    const [head, second, third] = ref.split("/");
    if (seen.has(ref) || since && seen.has("e" + since)) return true;
    if (/^r\d+$/.test(head)) return !second || !third && seen.has(`${ref}/${of}`);
    return head === of;
  };
}

let asking = new AbortController(), asked = "";
const learn = debounced(async question => {
  const {signal: stop} = asking = new AbortController();
  try {
    const answer = await ask(question, {signal: stop});
    if (stop.aborted) return;
    // The test stays the same function while the cursor moves.
    const same = knowledge.peek().answer && JSON.stringify(knowledge.peek().answer.marks) === JSON.stringify(answer.marks);
    knowledge.value = {answer, sees: same ? knowledge.peek().sees : sightOf(answer)};
  } catch (error) {
    if (!stop.aborted) knowledge.value = {error};
  }
}, 120);

effect(() => {
  const of = observer.value, {setting, answer} = run.value, at = cursor.value;
  const known = answer?.processes.some(p => p.name === of && !p.behavior);
  const question = known && setting ? {ask: "knowledge", run: setting, of, at} : null;
  const key = JSON.stringify(question && {...question, at: 0});
  asking.abort();
  if (key !== asked) knowledge.value = {}; // about another run or process
  asked = key;
  if (question) learn(question);
});

/** The test whether the observer sees a mark, or undefined if everything is shown. */
export function useSight() {
  const {sees} = use(knowledge);
  return useShown().id ? undefined : sees;
}
