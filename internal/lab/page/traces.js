// The traces that were opened in this tab: runs that a search found, and files of the reader. A trace is too long for a
// link, so a link has the beginning of its hash.

const memory = new Map();
const prefix = "parley-trace-";

/**
 * Keeps a trace and returns its key. The browser keeps it until the tab is closed, if it has room.
 * @param {string} text
 * @param {string} hash of the trace
 * @param {string} name says where it comes from
 */
export function keepTrace(text, hash, name) {
  const key = hash.slice(0, 8);
  memory.set(key, {text, name});
  try { sessionStorage.setItem(prefix + key, JSON.stringify({text, name})); } catch { /* it lasts until a reload */ }
  return key;
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
