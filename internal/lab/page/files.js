// Opening a scenario or a trace from a file that the reader drops on the page or chooses.

import {ask, keep} from "./engine.js";
import {notice, visit} from "./store.js";
import {keepTrace} from "./traces.js";
import {read, write} from "./link.js";

const largest = {scenario: 1 << 18, trace: 1 << 26}; // in bytes
const asked = 3 << 19; // a question has room for such a trace; a larger one is given to the engine once

/** @param {File | undefined} file */
export async function openFile(file) {
  if (!file) return;
  try {
    const isTrace = /\.jsonl?$/i.test(file.name) || (await file.slice(0, 1).text()) === "{";
    const kind = isTrace ? "trace" : "scenario";
    if (file.size > largest[kind]) {
      throw new Error(`${file.name} is too large: the lab opens a ${kind} of at most ${kind === "trace" ? "64 MB" : "256 kB"}.`);
    }
    if (isTrace && file.size > asked) return await openHash(await keep(file));
    const text = await file.text();
    if (isTrace) await openTrace(text, "from a trace file");
    else await visit(await write({view: "run", place: {y: text, flags: {}}}));
  } catch (err) {
    notice.value = `${file.name} cannot be opened: ${err.message}`;
  }
}

/**
 * Shows the run of a trace. If the address is already a link to this trace, it keeps its place.
 * @param {string} text
 * @param {string} name says where the trace comes from
 */
export async function openTrace(text, name) {
  const {report} = await ask({ask: "run", run: {trace: text}});
  keepTrace(text, report.trace_hash, name);
  await openHash(report.trace_hash);
}

/** Shows the run of a trace that the page or the engine has. */
async function openHash(hash) {
  const place = {t: hash.slice(0, 8), flags: {}};
  const here = await read(location.hash);
  const same = here.place?.t === place.t;
  const there = {view: "run", place, ...same && {at: here.at, sel: here.sel, of: here.of}, hash};
  await visit(await write(there));
}

addEventListener("dragover", event => event.preventDefault());
addEventListener("drop", event => {
  event.preventDefault();
  openFile(event.dataTransfer?.files[0]);
});
