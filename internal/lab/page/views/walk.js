// A walk through a model: the reader takes one possible move after the other, and sees the run so far.

import {capital, count, html, use, useEffect, useRef} from "../lib.js";
import {whole} from "../address.js";
import {linkTo as exploreLink} from "../searching.js";
import {Showing} from "../shown.js";
import {about} from "../store.js";
import {forward, go, model, moves, pane, take, undo, walk} from "../walking.js";
import {Copy} from "../parts/export.js";
import {Possible, Taken} from "../parts/moves.js";
import {Picture} from "../parts/picture.js";
import {openRun, Samples} from "../parts/samples.js";
import {State} from "../parts/state.js";
import {Steps} from "../parts/steps.js";

/** Digits take a move, Backspace takes one back, and the right arrow goes on to the next choice. */
function keys(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea, dialog")) return;
  const {answer, busy} = walk.peek();
  if (!answer || busy) return;
  const move = /^[1-9]$/.test(event.key) && answer.next[Number(event.key) - 1];
  const down = event.key === "ArrowDown" && !event.target.closest(".choices");
  const act = move ? () => take(move.name) : event.key === "Backspace" ? undo
    : event.key === "ArrowRight" && answer.next.length === 1 ? forward : down ? toMoves : null;
  if (!act) return;
  event.preventDefault();
  act();
}

/** Puts the focus on the first possible move. */
const toMoves = () => /** @type {HTMLElement | null} */ (document.querySelector(".choices button"))?.focus();

/** The run so far: its pictures and the states of its processes. */
function SoFar() {
  const {answer} = use(pane.run);
  if (!answer) return html`<section class="card"><p class="mute">The run begins when you have chosen.</p></section>`;
  return html`
    <${Showing} value=${pane}><${Steps} label="the run so far"/>
      ${answer.pictures.filter(name => name !== "tree").map(name => html`<${Picture} key=${name} name=${name}/>`)}<${State}/><//>`;
}

export function Walk() {
  const m = use(model), {answer, error, busy} = use(walk), list = use(moves);
  useEffect(() => {
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);
  // A move that is taken disappears with its button: the focus goes to the first one that is possible then.
  const count = useRef(list.length);
  useEffect(() => {
    if (answer && count.current !== list.length && document.activeElement === document.body) toMoves();
    count.current = list.length;
  }, [answer]);
  const title = about.peek().protocols.find(p => p.name === m?.protocol)?.title;
  const flags = Object.entries(m?.flags ?? {}).map(([name, value]) => value === "true" ? name : `${name} ${value}`).join(", ");
  return html`
    <div class="title far"><div><h1>Walk it yourself</h1>
      <p class="mute">${capital(title ?? m?.protocol ?? "")}${flags && ` · ${flags}`}
        ${m && html` · <a href=${exploreLink(m)}>Explore</a>`}</p></div>
      <${Copy} text=${whole} label="Copy link" done="Link copied"/></div>
    ${error && html`<p class="notice trouble" role="alert"><span>${capital(error.message)}</span>
      <button onClick=${() => go([])}>Start over</button></p>`}
    ${answer?.refused && html`<p class="notice" role="status"><span>${capital(answer.refused)}. The walk ends before it.</span></p>`}
    ${answer ? html`
      <div class="walk">
        <div class="walk-moves">
          <div class="walk-tools" role="group" aria-label="Moves">
            <button disabled=${!list.length || busy} onClick=${undo}>Undo</button>
            <button disabled=${!list.length || busy} onClick=${() => go([])}>Start over</button>
            <button disabled=${answer.next.length !== 1 || busy} onClick=${forward}
              title="Take moves as long as only one is possible (→)">To the next choice</button>
            <button class="primary" disabled=${!answer.trace} onClick=${() => openRun(answer.trace, list)}>Open in Run</button></div>
          <${Possible}/><${Samples}/></div>
        <div class="walk-run"><${Taken}/><${SoFar}/></div>
      </div>
      <p class="visually-hidden" role="status">${said(answer)}</p>`
      : !error && html`<p class="boot">The model is being made …</p>`}`;
}

/** What was taken last and what is possible, for readers who hear the page. */
function said({taken, next, over, stage}) {
  const last = taken.at(-1);
  return (last ? last.says + ". " : "") +
    (over ? "The run has ended." : stage !== "move" ? count(next.length, "choice") + "."
      : `${count(next.length, "move")} ${next.length === 1 ? "is" : "are"} possible.`);
}
