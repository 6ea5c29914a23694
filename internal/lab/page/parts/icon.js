// The signs on buttons, drawn so that they look alike on all systems.

import {html} from "../lib.js";

const paths = {
  play: "M5 3.5v9l7.5-4.5z", pause: "M4.5 3.5h2.5v9H4.5zM9 3.5h2.5v9H9z",
  back: "M10.5 3.5v9L4.5 8z", next: "M5.5 3.5v9L11.5 8z",
  first: "M12 3.5v9L7 8zM4 3.5h1.8v9H4z", last: "M4 3.5v9L9 8zM10.2 3.5H12v9h-1.8z",
  close: "M4.1 3L8 6.9 11.9 3 13 4.1 9.1 8l3.9 3.9-1.1 1.1L8 9.1 4.1 13 3 11.9 6.9 8 3 4.1z",
  sun: "M8 4.8a3.2 3.2 0 1 1 0 6.4a3.2 3.2 0 1 1 0-6.4zM7.3 1h1.4v2.2H7.3zM7.3 12.8h1.400V15H7.3zM1 7.3h2.2v1.4H1zM12.8 7.3H15v1.4h-2.2zM2.6 3.6l1-1 1.5 1.5-1 1zM10.9 11.9l1-1 1.5 1.5-1 1zM11.9 5.1l-1-1 1.5-1.5 1 1zM3.6 13.4l-1-1 1.5-1.5 1 1z",
  moon: "M9.5 1.5a6.6 6.6 0 1 0 5 9.6a5.6 5.6 0 0 1-5-9.6z",
  dice: "M3.5 2h9A1.5 1.5 0 0 1 14 3.5v9a1.5 1.5 0 0 1-1.5 1.5h-9A1.5 1.5 0 0 1 2 12.5v-9A1.5 1.5 0 0 1 3.5 2zm1.6 2a1.1 1.1 0 1 0 0 2.2a1.1 1.1 0 0 0 0-2.2zM8 6.9a1.1 1.1 0 1 0 0 2.2a1.1 1.1 0 0 0 0-2.2zm2.9 2.9a1.1 1.1 0 1 0 0 2.2a1.1 1.1 0 0 0 0-2.2z",
};

/** @param {{name: string}} props */
export const Icon = ({name}) => html`
  <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true"><path d=${paths[name]} fill-rule="evenodd"/></svg>`;
