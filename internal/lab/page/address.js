// The address of views that are not about one run: #/VIEW?key=value&… Their keys are read and written here.

import {signal} from "./vendor/signals.js";
import {encode} from "./link.js";

/** Reads the address. The token may still be in it. @returns {{view: string, keys: Map<string, string>}} */
function parsed() {
  const [view, query = ""] = location.hash.replace(/^#(token=[\w-]+)?\/?/, "").split(/\?(.*)/s);
  const keys = new Map();
  for (const pair of query.split("&").filter(Boolean)) {
    const [key, value = ""] = pair.split(/=(.*)/s);
    try {
      keys.set(decodeURIComponent(key), decodeURIComponent(value));
    } catch { /* a damaged part is left out */ }
  }
  return {view, keys};
}

/** What the address says. It changes when the reader follows a link, and not when the page notes its own state. */
export const address = signal(parsed());
addEventListener("hashchange", () => { address.value = parsed(); });

/**
 * Writes an address.
 * @param {string} view
 * @param {Iterable<[string, string]>} keys
 */
export function written(view, keys) {
  const query = [...keys].map(([key, value]) => `${encode(key)}=${encode(value)}`).join("&");
  return `#/${view}${query && "?" + query}`;
}

/** Notes the state of a view in the address, without a step in the history. */
export function note(view, keys) {
  const fragment = written(view, keys);
  if (parsed().view === view && location.hash !== fragment) history.replaceState(null, "", fragment);
}

/** The whole address, to be copied. */
export const whole = () => location.href;
