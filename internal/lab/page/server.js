// Questions to the program that serves the page, by HTTP.

import {Unreachable} from "./engine.js";

const gone = "The program that serves this page does not answer. Start it again, or look at its terminal. " +
  "The page keeps your place and tries again by itself.";

/**
 * Sends a question and returns the answer, which may say what is wrong with the question.
 * @param {object} question
 * @param {{onProgress?: (report: object) => void, signal?: AbortSignal}} options
 */
export async function send(question, {onProgress, signal}) {
  await entered;
  let response;
  try {
    response = await post("ask", question, signal);
  } catch (err) {
    throw signal?.aborted ? err : new Unreachable(gone);
  }
  // 401 and 503 end when the reader opens the address again, or when other questions end.
  if (response.status === 401 || response.status >= 500) throw new Unreachable((await response.text()).trim());
  if (!response.ok) throw new Error((await response.text()).trim());
  let answer;
  try {
    for await (const line of linesOf(response, onProgress)) {
      const report = JSON.parse(line);
      if ("progress" in report) onProgress?.(report.progress);
      else answer = report.answer;
    }
  } catch (err) {
    if (signal?.aborted) throw err;
  }
  if (!answer) throw new Unreachable(gone);
  return answer;
}

/**
 * Sends a request to the cluster of the view Live, and returns what happened, in words.
 * @param {object} request
 */
export async function act(request) {
  await entered;
  const response = await post("live/do", request);
  if (!response.ok) throw new Error((await response.text()).trim());
  const {said = "", error} = await response.json();
  if (error) throw new Error(error);
  return said;
}

/** Yields the states of the cluster, until the signal comes. */
export async function* states(request, signal) {
  await entered;
  const response = await post("live/watch", request, signal);
  if (!response.ok) throw new Error((await response.text()).trim());
  for await (const line of linesOf(response, true)) yield JSON.parse(line).state;
}

/** Sends JSON. The mode must not be "same-origin": with no-referrer, such a request has the origin null. */
function post(name, value, signal) {
  return fetch(new URL(name, import.meta.url), {
    method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(value), signal,
  });
}

/** Yields the lines of a body, each of which ends with a line feed: when they arrive, or else when all are there. */
async function* linesOf(response, live) {
  if (!live) {
    yield* (await response.text()).split("\n").slice(0, -1);
    return;
  }
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  let line = [];
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const parts = decoder.decode(value, {stream: true}).split("\n");
    for (const part of parts.slice(0, -1)) {
      line.push(part);
      yield line.join("");
      line = [];
    }
    line.push(parts.at(-1));
  }
}

/** Exchanges the token in the address for a cookie, and takes it out of the address: "#token=T/run" becomes "#/run". */
async function enter() {
  const found = /^#token=([\w-]+)(.*)$/.exec(location.hash);
  if (!found) return;
  history.replaceState(history.state, "", location.pathname + location.search + (found[2] && "#" + found[2]));
  await post("token", {token: found[1]}).catch(() => {}); // the next question reports what is wrong
}

let entered = enter();
addEventListener("hashchange", () => { entered = enter(); }); // the address of a new program, opened in the same tab
