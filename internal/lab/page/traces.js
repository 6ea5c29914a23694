// The traces that were opened in this tab: runs that a search found, and files of the reader. A trace is too long for a
// link, so the address has the beginning of its hash. A run that moves make has a link with these.

const memory = new Map();
const prefix = "parley-trace-";

/**
 * Keeps a trace. The browser keeps it until the tab is closed, if it has room.
 * @param {string} text
 * @param {string} hash of the trace
 * @param {string} name says where it comes from
 * @param {string} link is the fragment of the walk that makes the run; empty for none
 */
export function keepTrace(text, hash, name, link) {
  const key = hash.slice(0, 8);
  const kept = {text, name, link};
  memory.set(key, kept);
  try { sessionStorage.setItem(prefix + key, JSON.stringify(kept)); } catch { /* it lasts until a reload */ }
}

/** Returns the trace with a key, or undefined. */
function known(key) {
  if (memory.has(key)) return memory.get(key);
  try {
    const stored = JSON.parse(sessionStorage.getItem(prefix + key) ?? "null");
    if (stored) memory.set(key, stored);
    return stored ?? undefined;
  } catch {
    return undefined;
  }
}

/** Returns the text of a trace, or undefined: then the engine may have it. */
export const traceText = key => known(key)?.text;

/** Returns where a trace comes from. */
export const traceName = key => known(key)?.name ?? "from a trace file";

/** Returns the fragment of the walk that makes the run of a trace, or "": then only the file has the run. */
export const traceLink = key => known(key)?.link ?? "";
