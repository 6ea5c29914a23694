// The cluster that the view Live shows: its state, which the program sends once a second, and requests to change it.
// Only the program that serves the page has a cluster. So this module loads the way to it when it is needed.

import {batch, signal} from "./vendor/signals.js";

const program = () => import("./server.js");

/** The last state, as package live of the program describes it; null before the first. */
export const state = signal(null);

/** Why there is no newer state, as a sentence; empty if there is one. */
export const lost = signal("");

/** What came of the last request: {text, wrong}. */
export const said = signal({text: "", wrong: false});

/** The request that waits for the reader to agree: {request, question}; null for none. */
export const asked = signal(null);

let agreed = false; // the reader has agreed to requests that stop something

/**
 * Sends a request. One that stops something is sent when the reader has agreed, once for all.
 * @param {object} request
 * @param {string} [question] what it stops; empty if it stops nothing
 */
export async function act(request, question = "") {
  if (question && !agreed) {
    asked.value = {request, question};
    return;
  }
  said.value = {text: "", wrong: false};
  try {
    const text = await (await program()).act(request);
    said.value = {text, wrong: false};
  } catch (err) {
    said.value = {text: err.message, wrong: true};
  }
}

/** Answers the question of a request. */
export function answer(yes) {
  const waiting = asked.peek();
  asked.value = null;
  if (!waiting || !yes) return;
  agreed = true;
  act(waiting.request);
}

let stop = new AbortController();
let wanted = null; // what is watched; null for nothing

/** Begins to receive states, with a picture of a width and of the events of a machine. */
export async function watch(width, machine) {
  stop.abort();
  wanted = [width, machine];
  const mine = stop = new AbortController();
  while (!mine.signal.aborted) {
    try {
      for await (const next of (await program()).states(machine ? {width, machine} : {width}, mine.signal)) {
        if (mine.signal.aborted) return;
        batch(() => {
          state.value = next;
          lost.value = "";
        });
      }
      throw new Error("The program that serves this page does not answer: it may have ended, and the cluster with it.");
    } catch (err) {
      if (mine.signal.aborted) return;
      lost.value = err instanceof TypeError
        ? "The program that serves this page does not answer: it may have ended, and the cluster with it." : err.message;
    }
    await new Promise(again => { setTimeout(again, 1500); });
  }
}

/** Ends that. */
export function unwatch() {
  wanted = null;
  stop.abort();
}

document.addEventListener("visibilitychange", () => { // nobody asks the nodes for a page that nobody sees
  if (document.hidden) stop.abort();
  else if (wanted) watch(...wanted);
});
