// Taking a run away: as a link, as a command, and as files.

import {html, use, useState} from "../lib.js";
import {ask} from "../engine.js";
import {link, notice, run} from "../store.js";
import {longest} from "../link.js";

/** Copies a text, and says on the button that it did. */
export function Copy({text, label, done = "Copied", title = ""}) {
  const [copied, say] = useState(false);
  const copy = async () => {
    try {
      const value = typeof text === "function" ? await text() : text;
      await navigator.clipboard.writeText(value);
      say(true);
      setTimeout(say, 1600, false);
    } catch (err) {
      notice.value = err.name === "NotAllowedError" || !navigator.clipboard
        ? "The browser does not let the page copy: copy the address instead." : err.message;
    }
  };
  return html`<button onClick=${copy} title=${title || null} aria-live="polite">${copied ? done : label}</button>`;
}

/** Returns the link, if it is short enough to be sent. */
export async function shortLink() {
  const text = await link();
  if (text.length > longest) throw new Error("The link would be too long to be sent: export the scenario file instead.");
  return text;
}

/** Saves a file. */
export function save(name, blob) {
  const a = document.createElement("a");
  a.href = URL.createObjectURL(blob);
  a.download = name;
  a.click();
  setTimeout(URL.revokeObjectURL, 10_000, a.href);
}

async function file(form) {
  const {name, type, text} = await ask({ask: "export", form, run: run.peek().setting});
  return {name, blob: new Blob([text], {type}), text};
}

/** Draws the picture on a canvas, twice as large, for slides. */
async function png() {
  const {name, blob} = await file("svg");
  const image = new Image();
  image.src = URL.createObjectURL(blob);
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = 2 * image.naturalWidth;
  canvas.height = 2 * image.naturalHeight;
  const ink = canvas.getContext("2d");
  ink.fillStyle = "#fff";
  ink.fillRect(0, 0, canvas.width, canvas.height);
  ink.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  const drawn = await new Promise(resolve => canvas.toBlob(resolve, "image/png"));
  if (!drawn) throw new Error("The picture is too large for a PNG file: export it as SVG.");
  return {name: name.replace(/svg$/, "png"), blob: drawn};
}

const kinds = [
  ["svg", "Picture", "SVG, for papers"], ["png", "Picture", "PNG, for slides"],
  ["trace", "Trace", "JSON lines, every event"], ["scenario", "Scenario", "YAML, for parley run --scenario"],
];

export function Export() {
  const ready = Boolean(use(run).answer);
  const pick = async (kind, event) => {
    event.target.closest("details").open = false;
    try {
      const {name, blob} = kind === "png" ? await png() : await file(kind);
      save(name, blob);
    } catch (err) {
      notice.value = err.message;
    }
  };
  if (!ready) return null;
  return html`
    <details class="menu"><summary class="button">Export</summary>
      <div class="menu-body">${kinds.map(([kind, name, says]) => html`<button class="plain" onClick=${e => pick(kind, e)}>
        <b>${name}</b> <span class="mute">${says}</span></button>`)}</div></details>`;
}
