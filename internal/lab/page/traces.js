// Traces that were opened in this tab: runs that a search found, and files that were dropped on the page. A trace is too
// long for a link, so a link only has a key of it.

const memory = new Map();
const prefix = "parley-trace-";

/** The largest trace, in characters: the engine reads it with every question. */
export const largest = 1_800_000;

/**
 * Keeps a trace and returns its key. The browser keeps it until the tab is closed, if it has room.
 * @param {string} text
 * @param {string} name says where it comes from
 */
export function keepTrace(text, name) {
  const key = sum(text);
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

/** Returns the text of a trace. Another tab does not have it. */
export function traceText(key) {
  const trace = known(key);
  if (trace) return trace.text;
  throw new Error("This link is about a trace. Only the tab that opened the trace has it: drop the trace file on the page.");
}

/** Returns where a trace comes from. */
export const traceName = key => known(key)?.name ?? "a trace";

/** A key that differs for different texts, as far as chance goes. */
function sum(text) {
  let a = 0x811c9dc5, b = 0x9747b28c;
  for (let i = 0; i < text.length; i++) {
    a = Math.imul(a ^ text.charCodeAt(i), 0x01000193);
    b = Math.imul(b ^ text.charCodeAt(i), 0x85ebca6b) + i | 0;
  }
  return [a, b].map(n => (n >>> 0).toString(16).padStart(8, "0")).join("");
}
