// Arrow keys in a table: one cell can be reached by Tab, and the arrows move from there.

/** Handles the keys of a table with role=grid. */
export function gridKeys(event) {
  const cell = event.target.closest("[role=gridcell]");
  if (!cell || event.altKey || event.ctrlKey || event.metaKey) return;
  if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    cell.click();
    return;
  }
  const steps = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]};
  const step = steps[event.key];
  if (!step) return;
  event.preventDefault();
  const rows = [...event.currentTarget.querySelectorAll("tbody tr")].map(row => [...row.querySelectorAll("[role=gridcell]")]);
  const r = rows.findIndex(row => row.includes(cell));
  const next = rows[r + step[0]]?.[rows[r].indexOf(cell) + step[1]];
  if (!next) return;
  cell.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}
