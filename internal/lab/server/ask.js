// The page's way to an engine: here the program that serves the page, by HTTP. The static page has another file of
// this name, which asks a worker.

/** Whether a program serves the page, on whose computer it may act. */
export const served = true;

/**
 * Asks the engine a question.
 * @param {object} question has its kind in the field ask.
 * @param {{signal?: AbortSignal, progress?: (report: object) => void}} options signal withdraws the question.
 * @returns {Promise<object>} the answer. If it has the field error, the question was wrong. The promise is rejected
 *     if there is no answer: with an AbortError after signal, or else with a sentence for the user.
 */
export async function ask(question, {signal, progress} = {}) {
  await entered;
  let response;
  try {
    response = await post("ask", question, signal);
  } catch (err) {
    throw signal?.aborted ? err : new Error(unreachable);
  }
  if (!response.ok) throw new Error((await response.text()).trim());
  let answer;
  try {
    for await (const line of linesOf(response.body)) {
      const report = JSON.parse(line);
      if ("progress" in report) progress?.(report.progress);
      else answer = report.answer;
    }
  } catch (err) {
    if (signal?.aborted) throw err;
    answer = undefined;
  }
  if (answer === undefined) throw new Error(unreachable);
  return answer;
}

const unreachable = "The program that serves this page does not answer: look at the terminal in which it runs.";

/** Sends JSON. The mode must not be "same-origin": with no-referrer, such a request has the origin null. */
function post(name, value, signal) {
  return fetch(new URL(name, import.meta.url), {
    method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify(value), signal,
  });
}

/** Yields the lines of a body, each of which ends with a line feed. */
async function* linesOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let line = [];
  for (;;) {
    const {done, value} = await reader.read();
    if (done) return;
    const parts = value.split("\n");
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
  let response;
  try {
    response = await post("token", {token: found[1]});
  } catch {
    throw new Error(unreachable);
  }
  if (!response.ok) throw new Error((await response.text()).trim());
}

let entered;
function entering() {
  entered = enter();
  entered.catch(() => {}); // the next question reports it
}
entering();
addEventListener("hashchange", entering); // the address of a new program was opened in the same tab
