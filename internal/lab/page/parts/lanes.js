// The names of the processes beside a picture that is scrolled sideways, so that a narrow screen shows whose lane it is.

import {parsed} from "./picture.js";

/**
 * Adds a copy of the names at the left of a picture to the box that scrolls it.
 * @param {SVGSVGElement} svg a picture in the page
 * @param {string} text its source
 * @param {HTMLElement} box
 * @returns {(() => void) | null} what to do when the box scrolls
 */
export function lanes(svg, text, box) {
  const names = [...svg.querySelectorAll("rect.process")].map(name => name.getBBox());
  if (names.length < 2 || new Set(names.map(n => n.x + n.width)).size > 1) return null; // they are not at the left
  const copy = parsed(text);
  for (const mark of copy.querySelectorAll(":not(g, rect.process, text.name, tspan)")) mark.remove();
  for (const mark of [copy, ...copy.querySelectorAll("[id]")]) mark.removeAttribute("id");
  for (const name of ["role", "aria-label"]) copy.removeAttribute(name);
  copy.classList.add("lane-names");
  copy.setAttribute("aria-hidden", "true");
  const ground = [...svg.children].find(child => child.tagName === "g").transform.baseVal.consolidate()?.matrix;
  const {x, y, width: whole} = svg.viewBox.baseVal;
  const left = names[0].x + (ground?.e ?? 0) - 6, width = names[0].width + 12;
  const height = Math.max(...names.map(n => n.y + n.height)) + (ground?.f ?? 0) - y + 12;
  copy.setAttribute("viewBox", `${left} ${y} ${width} ${height}`);
  box.append(copy);
  return () => {
    const scale = svg.clientWidth / whole;
    copy.setAttribute("width", String(width * scale));
    copy.setAttribute("height", String(height * scale));
    box.classList.toggle("scrolled", box.scrollLeft > (left - x) * scale);
  };
}
