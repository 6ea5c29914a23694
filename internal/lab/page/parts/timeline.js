// Where the cursor stands in a picture. Pictures with a time axis get a line across; in the others each round is a
// band, and a bar above the band grows as the round goes by.

import {eventAt, roundAt, timeAt} from "../store.js";
import {number} from "../lib.js";
import {refAt} from "./marks.js";

const svgElement = name => document.createElementNS("http://www.w3.org/2000/svg", name);
const set = (element, attributes) => {
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
};

/**
 * Adds the cursor to a picture, and returns the function that moves it.
 * @param {SVGSVGElement} svg
 * @param {string} name of the picture
 * @param {import("../shown.js").Shown} shown what the picture shows
 * @returns {(event: number) => void}
 */
export function timeline(svg, name, shown) {
  const ground = [...svg.children].find(child => child.tagName === "g") ?? svg;
  if (svg.querySelector(".band[data-ref^=r]")) return bands(svg, ground, shown);
  if (name === "spacetime") return line(svg, ground, "y", shown);
  if (["stages", "clocks", "waiting"].includes(name)) return line(svg, ground, "x", shown);
  return () => {};
}

/** The bars of the rounds. */
function bands(svg, ground, {run}) {
  const bars = new Map();
  for (const band of svg.querySelectorAll(".band[data-ref^=r]")) {
    const box = band.getBBox();
    const bar = svgElement("rect");
    set(bar, {class: "progress", x: box.x, y: box.y - 5, height: 3, rx: 1.5, width: 0});
    ground.append(bar);
    bars.set(Number(band.dataset.ref.slice(1)), {bar, width: box.width});
  }
  return event => {
    for (const {number, first, last} of run.peek().answer?.rounds ?? []) {
      const round = bars.get(number);
      const part = Math.max(0, Math.min(1, (event - first + 1) / (last - first + 1)));
      if (round) set(round.bar, {width: round.width * part});
    }
  };
}

/** A line across the picture at the time of the cursor. The marks say which time is where. */
function line(svg, ground, axis, {run, moveTo}) {
  const known = places(svg, axis, run.peek());
  const box = ground.getBBox();
  const across = axis === "x" ? "y" : "x";
  const size = axis === "x" ? "height" : "width";
  const lanes = [...svg.querySelectorAll(".lane, .guide, .resync")].map(lane => lane.getBBox())
    .filter(box => Math.max(box.width, box.height) > 40); // the others are signs of the legend
  const from = lanes.length ? Math.min(...lanes.map(b => b[across])) : box[across];
  const to = lanes.length ? Math.max(...lanes.map(b => b[across] + b[size])) : box[across] + box[size];
  const end = box[axis] + box[axis === "x" ? "width" : "height"];
  const mark = svgElement("line"), knob = svgElement("circle");
  set(mark, {class: "cursor-line", [across + 1]: from - 8, [across + 2]: to + 8});
  set(knob, {class: "cursor-knob", r: 4, ["c" + across]: from - 8});
  const past = svgElement("text"); // where the cursor is, if the picture ends before it
  set(past, {class: "cursor-past", "text-anchor": "end"});
  const veil = svgElement("rect"); // over what is still to come, so that bars grow with the cursor
  if (axis === "x") {
    set(veil, {class: "veil", y: from, height: to - from});
    ground.append(veil, ...svg.querySelectorAll("text.head")); // headings stay over it
  }
  ground.append(mark, knob, past);
  svg.addEventListener("click", event => {
    if (!refAt(event.target)) press(event);
  });
  const press = event => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(ground.getScreenCTM().inverse());
    if (point[across] < from - 8 || point[across] > to + 8 || point[axis] < known[0]?.[1] - 8) return;
    moveTo(eventAt(placeOf(known.map(([time, place]) => [place, time]), point[axis]), run.peek()));
  };
  return event => {
    const time = timeAt(event, run.peek()), wanted = placeOf(known, time);
    const at = Math.min(wanted, end);
    past.textContent = axis === "x" && wanted > end + 1 ? `the cursor is at ${number(time)} →` : "";
    set(past, {x: at - 8, y: from + 5});
    const over = event >= (run.peek().answer?.report.events ?? 0); // nothing is still to come
    if (axis === "x") set(veil, {x: at, width: over ? 0 : Math.max(0, box.x + box.width - at)});
    set(mark, {[axis + 1]: at, [axis + 2]: at});
    set(knob, {["c" + axis]: at});
  };
}

/** Returns times and their places, sorted by both. The lines of a scale of time have their times. */
function places(svg, axis, made) {
  const scale = [...svg.querySelectorAll("line.guide[data-value]")];
  if (axis === "x" && scale.length > 1) {
    return scale.map(mark => /** @type {[number, number]} */ ([Number(mark.dataset.value), Number(mark.getAttribute("x1"))]));
  }
  /** @type {[number, number][]} */
  const found = [];
  for (const mark of svg.querySelectorAll(axis === "x" ? "line, circle, path, rect.stage" : "line, circle")) {
    const {since, until} = mark.dataset;
    const [, x, y] = /^M(-?\d+),(-?\d+)/.exec(mark.getAttribute("d") ?? "") ?? [];
    const start = mark.getAttribute(axis + 1) ?? mark.getAttribute("c" + axis) ?? mark.getAttribute(axis) ??
      (axis === "x" ? x : y);
    if (since && start != null) found.push([timeAt(Number(since), made), Number(start)]);
    const end = mark.getAttribute(axis + 2);
    if (until && end != null) found.push([timeAt(Number(until), made), Number(end)]);
  }
  found.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const rising = [];
  for (const one of found) if (!rising.length || one[1] > rising.at(-1)[1] && one[0] > rising.at(-1)[0]) rising.push(one);
  return rising;
}

/** Returns the place of a time, between the known ones. */
function placeOf(known, time) {
  if (!known.length) return 0;
  let next = known.findIndex(([t]) => t >= time);
  if (next < 0 && known.length > 1) next = known.length - 1; // past the last one: as far as before it
  if (next < 0) return known.at(-1)[1];
  if (next === 0) return known[0][1];
  const [t1, p1] = known[next - 1], [t2, p2] = known[next];
  return p1 + (p2 - p1) * (time - t1) / (t2 - t1);
}

/** The round of an event in words, or "". */
export function roundWords(event) {
  const round = roundAt(event);
  return round < 0 ? "" : `round ${round}`;
}
