// Light or dark: as the system says, or as the reader chose.

import {signal} from "./vendor/signals.js";

const root = document.documentElement;
const stored = () => {
  try { return localStorage.getItem("parley-theme") ?? ""; } catch { return ""; } // a browser may forbid storage
};

/** The reader's choice: light, dark, or "" for the system's. */
export const theme = signal(stored());

const apply = value => {
  if (value) root.dataset.theme = value;
  else delete root.dataset.theme;
};
theme.subscribe(apply);

/** Whether the page is dark now. */
export const isDark = () => theme.peek() ? theme.peek() === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

/** Changes to the other look. */
export function toggle() {
  theme.value = isDark() ? "light" : "dark";
  try { localStorage.setItem("parley-theme", theme.value); } catch { /* it lasts until the page is closed */ }
}
