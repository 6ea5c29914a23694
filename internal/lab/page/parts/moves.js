// The moves of a walk: those that are possible, those that were taken, and how each property fares after each of them.

import {capital, classes, count, html, number, use, useLayoutEffect, useRef} from "../lib.js";
import {backTo, pane, take, walk} from "../walking.js";
import {Pan} from "./pan.js";

/** What the next move chooses. */
const stages = {
  root: ["Which run", "Choose a beginning of the run."],
  begin: ["How it begins", "Choose what happens as the processes start."],
  move: ["Possible now", "Press a move to take it."],
};

/** A move in words, with the process at which it happens first. */
function Says({text}) {
  const [, who, rest] = /^([Pp]\d+\b)(.*)$/s.exec(text) ?? ["", "", text];
  return html`<span class="says"><b>${who}</b>${rest}</span>`;
}

/** Moves the focus in the list by arrow keys. */
function arrows(event) {
  const step = {ArrowDown: 1, ArrowUp: -1}[event.key];
  if (!step) return;
  event.preventDefault();
  const all = [...event.currentTarget.querySelectorAll("button")];
  all[all.indexOf(event.target) + step]?.focus();
}

/** The moves that are possible now. */
export function Possible() {
  const {answer, busy} = use(walk);
  const {stage, next, more, over} = answer;
  const [title, says] = stages[stage];
  return html`
    <section class="card possible" aria-labelledby="possible">
      <div class="card-head"><h2 id="possible" tabindex="-1">${over ? "The end" : title}</h2>
        <span class="mute">${over ? "" : count(next.length + more, stage === "move" ? "move" : "choice")}</span></div>
      ${over ? html`<p>Nothing more is due: the run has ended. Undo, or open it.</p>` : html`
        <p class="mute">${says}</p>
        <${Pan} class=${classes({choices: true, busy})} label=${title} onKeyDown=${arrows}>
          <ol>${next.map((m, i) => html`
            <li key=${m.name}><button class="plain move" data-move=${m.name} onClick=${() => take(m.name)}>
              ${i < 9 ? html`<kbd aria-hidden="true">${i + 1}</kbd>` : html`<span></span>`}
              <span><${Says} text=${m.says}/>
                ${m.breaks.map(p => html` <span class="tag broken">✗ breaks ${p}</span>`)}</span></button></li>`)}</ol>
        <//>
        ${more > 0 && html`<p class="mute">and ${count(more, "other move")}, which the list has no room for</p>`}`}
    </section>`;
}

/** How a property fares after a move: a sign, a class, and words. */
function fares(f, i, last, over) {
  if (f.sometimes) return f.breaks >= 0 && i >= f.breaks ? ["◆", "seen", "seen"] : ["·", "none", "not seen so far"];
  if (f.breaks >= 0 && i >= f.breaks) return ["✗", "bad", "broken"];
  if (f.at_end) return over && i === last ? ["●", "ok", "holds at the end"] : ["○", "open", "known only at the end"];
  return ["●", "ok", "holds so far"];
}

const Dot = ({how: [sign, look, words], name}) => html`
  <td class="dot ${look}" title=${`${name}: ${words}`}><span aria-hidden="true">${sign}</span>
    <span class="visually-hidden">${words}</span></td>`;

/** The moves that were taken, each with a dot for each property. */
export function Taken() {
  const {answer} = use(walk);
  const at = use(pane.cursor);
  const {taken, properties, over} = answer;
  const box = useRef(null);
  useLayoutEffect(() => { // the last move is in view
    if (box.current) box.current.scrollTop = box.current.scrollHeight;
  }, [taken.length]);
  if (!taken.length) return null;
  const last = taken.length - 1;
  const named = taken.map((t, i) => taken.slice(0, i + 1).filter(x => x.name).length); // moves up to each
  const now = taken.findIndex(t => t.events >= at);
  return html`
    <section class="card taken" aria-labelledby="taken">
      <div class="card-head"><h2 id="taken">The run so far</h2><span class="mute">${count(named[last], "move")}</span></div>
      <${Pan} label="The run so far" box=${box}><table>
        <thead><tr><th scope="col"><span class="visually-hidden">number</span></th><th scope="col">move</th>
          ${properties.map(p => html`
            <th scope="col" class="dot"><abbr title=${`${p.property}: ${p.says}`}>${short(p.property)}</abbr></th>`)}
          <th scope="col"><span class="visually-hidden">back to here</span></th></tr></thead>
        <tbody>${taken.map((t, i) => html`
          <tr key=${i} class=${classes({now: i === now, breaks: properties.some(p => p.breaks === i && !p.sometimes)})}>
            <td class="nr">${t.name && number(named[i])}</td>
            <td><button class="plain" disabled=${!t.events} onClick=${() => pane.moveTo(t.events)} title="Show the run up to here">
              <${Says} text=${t.says}/></button></td>
            ${properties.map(p => html`<${Dot} how=${fares(p, i, last, over)} name=${p.property}/>`)}
            <td>${i < last && html`<button class="plain back" title="Go back to here: take the later moves back"
              aria-label=${`Back to move ${named[i]}`} onClick=${() => backTo(named[i])}>↶</button>`}</td></tr>`)}</tbody></table><//>
      ${properties.length > 0 && html`<ul class="fares">${properties.map(p => {
        const how = fares(p, last, last, over);
        return html`<li class=${how[1]}><span class="sign" aria-hidden="true">${how[0]}</span>
          <p><b>${p.property}</b> <span class="mute">${short(p.property)}</span> ${how[2]}${p.why && how[1] === "bad" && html`
            <span class="breach">${capital(p.why)}</span>`}</p></li>`;
      })}</ul>`}
    </section>`;
}

/** The first letters of a property's words. */
const short = name => name.split(/[ -]/).map(word => word[0].toUpperCase()).join("");
