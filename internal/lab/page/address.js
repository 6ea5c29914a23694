// The address of views that are not about one run: #/VIEW?key=value&… Their keys are read and written here.

import {signal} from "./vendor/signals.js";
import {encode} from "./link.js";

/** @returns {{view: string, keys: Map<string, string>}} */
function parsed() {
  const [view, query = ""] = location.hash.replace(/^#?\/?/, "").split(/\?(.*)/s);
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

// The fragment that is known. If the address has another one, the reader has followed a link, of which the page has yet to
// hear: noting the state of the page now would undo that.
let known = location.hash;
addEventListener("hashchange", () => {
  known = location.hash;
  address.value = parsed();
});

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
  if (location.hash !== known || parsed().view !== view || known === fragment) return;
  history.replaceState(null, "", fragment);
  known = location.hash;
}

/** The whole address, to be copied. */
export const whole = () => location.href;
