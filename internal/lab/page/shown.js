// Which run the parts of a page show. Most views show one run, that of the store. A view that shows two of them, or the
// run of a walk, gives each a pane of its own: a run with a cursor and a selection.

import {createContext} from "./vendor/preact.js";
import {useContext} from "./vendor/hooks.js";
import {batch, computed, signal} from "./vendor/signals.js";
import * as store from "./store.js";

const {run, cursor, events, selection, owner, moveTo, select, goTo} = store;

/** The run of the store. id comes before the names of elements, which no two parts of a page may share. */
const main = {id: "", run, cursor, events, selection, owner, moveTo, select, goTo};

/** @typedef {typeof main} Shown */

const Context = createContext(main);

/** Gives the parts in it another run to show: html`<${Showing} value=${pane}>…`. */
export const Showing = Context.Provider;

/** What a part shows. @returns {Shown} */
export const useShown = () => useContext(Context);

/**
 * Returns a pane without a run.
 * @param {string} id
 * @returns {Shown}
 */
export function paneOf(id) {
  const run = signal({}), cursor = signal(0), selection = signal("");
  const events = computed(() => run.value.answer?.report.events ?? 0);
  const moveTo = event => { cursor.value = Math.max(0, Math.min(events.value, Math.trunc(event))); };
  return {
    id, run, cursor, events, selection, owner: signal(""), moveTo,
    select: ref => { selection.value = ref === selection.peek() ? "" : ref; },
    goTo: event => batch(() => {
      moveTo(event);
      selection.value = "e" + event;
    }),
  };
}
