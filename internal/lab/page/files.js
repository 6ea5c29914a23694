// Opening a scenario, a trace, or the traces of several nodes from files that the reader drops on the page or chooses.

import {ask, keep} from "./engine.js";
import {notice, visit} from "./store.js";
import {keepTrace} from "./traces.js";
import {read, write} from "./link.js";

const largest = {scenario: 1 << 18, trace: 1 << 26}; // in bytes
const asked = 3 << 19; // a question has room for such a trace; a larger one is given to the engine once

const isTrace = async file => /\.jsonl?$/i.test(file.name) || (await file.slice(0, 1).text()) === "{";

/** @param {Iterable<File> | null | undefined} list */
export async function openFiles(list) {
  const files = [...list ?? []];
  if (!files.length) return;
  const what = files.length === 1 ? files[0].name : `${files.length} files`;
  try {
    const kinds = await Promise.all(files.map(isTrace));
    const kind = kinds.every(Boolean) ? "trace" : "scenario";
    if (kind === "scenario" && files.length > 1) {
      throw new Error(`${files[kinds.indexOf(false)].name} is not a trace. Open a scenario alone.`);
    }
    const size = files.reduce((sum, file) => sum + file.size, 0);
    if (size > largest[kind]) {
      throw new Error(`${what} ${files.length > 1 ? "are" : "is"} too large: the lab opens ${files.length > 1 ? "traces" : `a ${kind}`} ` +
        `of at most ${kind === "trace" ? "64 MB" : "256 kB"}${files.length > 1 ? " in all" : ""}.`);
    }
    const file = files.length > 1 ? bundle(files) : files[0];
    if (kind === "trace" && file.size > asked) return await openHash(await keep(file));
    const text = await file.text();
    if (kind === "trace") await openTrace(text, files.length > 1 ? `from ${files.length} trace files` : "from a trace file");
    else await visit(await write({view: "run", place: {y: text, flags: {}}}));
  } catch (err) {
    notice.value = `${what} cannot be opened: ${err.message}`;
  }
}

/** Several files as one, for the engine: a line with their names and sizes, and then their bytes. */
function bundle(files) {
  const head = JSON.stringify({files: files.map(({name, size}) => ({name, size}))});
  return new Blob([head + "\n", ...files]);
}

/**
 * Shows the run of a trace. If the address is already a link to this trace, it keeps its place.
 * @param {string} text
 * @param {string} name says where the trace comes from
 * @param {string} link is the fragment of the walk that makes the run, if there is one
 */
export async function openTrace(text, name, link = "") {
  const {report, nodes} = await ask({ask: "run", run: {trace: text}});
  const hash = nodes?.hash ?? report.trace_hash;
  keepTrace(text, hash, name, link);
  await openHash(hash, nodes ? "" : hash);
}

/** Shows the run of traces that the page or the engine has. The hash of a run is known if it has its own trace. */
async function openHash(hash, made = "") {
  const place = {t: hash.slice(0, 8), flags: {}};
  const here = await read(location.hash);
  const same = here.place?.t === place.t;
  const there = {view: "run", place: same ? here.place : place, ...same && {at: here.at, sel: here.sel, of: here.of}, hash: made};
  await visit(await write(there));
}

addEventListener("dragover", event => event.preventDefault());
addEventListener("drop", event => {
  event.preventDefault();
  openFiles(event.dataTransfer?.files);
});
