// Questions to a worker, which has the engine compiled to WebAssembly.

import {Unreachable} from "./engine.js";
import {stored} from "./stored.js";

/**
 * The worker, the promise of its compiled module, and the questions that it has not answered.
 * @typedef {{worker: Worker, open: Map<number, {done: Function, fail: Function, onProgress?: Function}>}} Host
 */

let last = 0;
/** @type {WebAssembly.Module | undefined} */
let compiled;
/** @type {Host | undefined} */
let host;

/** Returns the running worker. A new one gets the compiled module, so only the first one compiles. */
function running() {
  if (host) return host;
  const worker = new Worker(new URL("worker.js", import.meta.url), {type: "module", name: "engine"});
  const mine = {worker, open: new Map()};
  worker.onmessage = ({data}) => {
    if (data.module) compiled = data.module;
    if (data.failed) return end(mine, new Error("The engine did not start: " + data.failed));
    const question = mine.open.get(data.id);
    if (!question) return;
    if (data.progress !== undefined) return question.onProgress?.(JSON.parse(data.progress));
    mine.open.delete(data.id);
    question.done(JSON.parse(data.answer));
  };
  worker.onerror = event => {
    event.preventDefault();
    end(mine, new Unreachable("The engine stopped. The page keeps your place and starts it again."));
  };
  worker.postMessage({module: compiled});
  return host = mine;
}

/** Ends a worker. Its questions fail. */
function end(mine, err) {
  mine.worker.terminate();
  if (host === mine) host = undefined;
  for (const question of mine.open.values()) question.fail(err);
  mine.open.clear();
}

/** Keeps the run of a trace file in the worker. A new worker does not have it. */
export async function keep(file) {
  const trace = await file.arrayBuffer();
  return new Promise((done, fail) => {
    const mine = running();
    const id = ++last;
    mine.open.set(id, {done, fail});
    mine.worker.postMessage({id, trace}, [trace]);
  });
}

const patience = 300; // milliseconds in which a withdrawn search must stop

/**
 * Returns the answer to a question. While the worker loads the engine, it may be a stored one.
 * @param {object} question
 * @param {{onProgress?: (report: object) => void, signal?: AbortSignal}} options
 */
export async function send(question, {onProgress, signal}) {
  const text = JSON.stringify(question);
  const answer = compiled ? undefined : await stored(question, text);
  if (signal?.aborted) throw signal.reason;
  running(); // it loads the engine even if the answer is known
  return answer ?? asked(text, {onProgress, signal});
}

/**
 * Sends a question to the worker. WebAssembly has one thread: it hears that a question is withdrawn only when it reports
 * progress. If a search does not stop soon, its worker ends, and the other questions go to the next worker. Other answers
 * take milliseconds, so they are only ignored.
 */
function asked(question, {onProgress, signal}) {
  return new Promise((done, fail) => {
    const mine = running();
    const id = ++last;
    mine.open.set(id, {done, fail, onProgress});
    mine.worker.postMessage({id, question});
    signal?.addEventListener("abort", () => {
      if (!mine.open.has(id)) return;
      fail(signal.reason);
      if (!onProgress) return mine.open.delete(id);
      mine.worker.postMessage({stop: id});
      setTimeout(() => {
        if (mine.open.delete(id)) end(mine, new Unreachable("The engine starts again."));
      }, patience);
    }, {once: true});
  });
}
