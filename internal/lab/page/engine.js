// The page's way to an engine. The form of the page says which one: the program that serves it, or a worker of the
// browser with the engine compiled to WebAssembly. Both understand the same questions.

import {signal} from "./vendor/signals.js";

/** Which engine answers: server or wasm. */
export const form = document.querySelector('meta[name="parley-engine"]')?.getAttribute("content") ?? "server";

/** What keeps the engine from answering, as a sentence for the reader; empty if it answers. */
export const trouble = signal("");

/** An answer that says what is wrong with the question. */
export class Refusal extends Error {
  /** @param {{message: string, flag?: string, line?: number}} failure */
  constructor(failure) {
    super(failure.message);
    this.flag = failure.flag ?? "";
    this.line = failure.line ?? 0;
  }
}

/** The engine cannot be reached at the moment, and may be later. */
export class Unreachable extends Error {}

const transport = import(form === "wasm" ? "./wasm.js" : "./server.js");

const waits = [500, 1000, 2000, 4000, 8000, 15000]; // between attempts, in milliseconds

/**
 * Asks the engine. While it is unreachable, the question waits, and trouble says why.
 * @param {object} question has its kind in the field ask
 * @param {{onProgress?: (report: object) => void, signal?: AbortSignal}} [options] signal withdraws the question
 * @returns {Promise<any>} the answer; rejected with a Refusal if the question is wrong, and with an AbortError if it
 *     was withdrawn
 */
export async function ask(question, {onProgress, signal} = {}) {
  const {send} = await transport;
  const report = onProgress && (progress => { // it answers again, although the answer is not complete
    trouble.value = "";
    onProgress(progress);
  });
  for (let attempt = 0; ; attempt++) {
    try {
      const answer = await send(question, {onProgress: report, signal});
      trouble.value = "";
      // An answer about a setting that is wrong has an error beside other fields; it is an answer nevertheless.
      if (answer.error && Object.keys(answer).length === 1) throw new Refusal(answer.error);
      return answer;
    } catch (err) {
      if (!(err instanceof Unreachable) || signal?.aborted) throw err;
      trouble.value = err.message;
    }
    await pause(waits[Math.min(attempt, waits.length - 1)], signal);
  }
}

/**
 * Has the engine keep the run of a trace file that is too large for a question, and returns the hash of the trace.
 * @param {Blob} file
 */
export async function keep(file) {
  const answer = await (await transport).keep(file);
  if (answer.error) throw new Refusal(answer.error);
  return answer.hash;
}

/**
 * Resolves after some milliseconds, or when the address changes, because a new address may have a new token. It is
 * rejected when the signal comes.
 */
function pause(wait, signal) {
  return new Promise((resolve, reject) => {
    const over = new AbortController();
    const end = settle => () => {
      over.abort();
      clearTimeout(timer);
      settle(new DOMException("withdrawn", "AbortError"));
    };
    const timer = setTimeout(end(resolve), wait);
    addEventListener("hashchange", end(resolve), {signal: over.signal});
    signal?.addEventListener("abort", end(reject), {signal: over.signal});
  });
}
