// What is selected, in words: an event with its causes and effects, a message, a node with its vote, or a process.

import {capital, classes, count, html, number, use, useAnswer} from "../lib.js";
import {cursor, goTo, moveTo, named, observer, place, process, run, select, selection} from "../store.js";
import {seatOf} from "../game.js";
import {coneOf, filledBy, parse, useEvent} from "../selection.js";
import {Icon} from "./icon.js";

/** An event of a chain, as a button that goes to it. */
const Step = ({line, now}) => html`
  <li class=${classes({now, faulty: line.fault})}><button class="plain" onClick=${() => goTo(line.event)}>
    <span class="nr">${number(line.event)}</span> <b>${line.at}</b> ${line.says}</button></li>`;

/** The chain of events that led to an event, and what it caused. */
function Chain({event}) {
  const {setting} = use(run);
  const {answer} = useAnswer(event ? {ask: "event", event, run: setting} : null);
  const cone = use(coneOf);
  if (!answer) return null;
  const {causes, effects, crashes = []} = answer;
  return html`
    <label class="check"><input type="checkbox" checked=${cone === event}
      onChange=${e => { coneOf.value = e.target.checked ? event : 0; }}/> show only its past and its future</label>
    ${causes.length > 0 && html`<h3>Why</h3><ol class="chain">${causes.map(line => html`<${Step} line=${line}/>`)}
      <${Step} line=${answer} now/></ol>`}
    ${crashes.length > 0 && html`<h3>What blocks it</h3><ul class="chain">${crashes.map(line => html`<${Step} line=${line}/>`)}</ul>`}
    ${effects.length > 0 && html`<h3>What it caused</h3><ul class="chain">${effects.slice(0, 12).map(line => html`
      <${Step} line=${line}/>`)}</ul>${effects.length > 12 && html`<p class="mute">and ${count(effects.length - 12, "more event")}</p>`}`}
    ${causes.length + effects.length + crashes.length === 0 && html`<p class="mute">Nothing caused it, and it caused nothing.</p>`}`;
}

function Event({event}) {
  const line = useEvent();
  if (!line) return html`<p class="mute">…</p>`;
  return html`
    <p class="what"><b>${line.at}</b> ${line.says}</p>
    <p class="mute">event ${number(line.event)}, at time ${number(line.time)}${line.fault && ", at a faulty process"}</p>
    <${Chain} event=${event}/>`;
}

/** A message of a round: what it says, whether it is a lie, and its two events. */
function Message({parts}) {
  const {setting} = use(run);
  const {answer} = useAnswer({ask: "tables", run: setting});
  const table = answer?.tables.find(t => t.round === parts.round);
  const cell = table?.cells.flat().find(c => c.ref === `r${parts.round}/${parts.from}/${parts.to}`);
  if (!answer) return html`<p class="mute">…</p>`;
  if (!cell?.total) return html`<p>${named(parts.from)} sends nothing to ${named(parts.to)} in round ${parts.round}.</p>`;
  return html`
    <p class="what"><b>${named(parts.from)} → ${named(parts.to)}</b>, round ${parts.round}</p>
    <p class="rows parley-scene">${cell.rows.map(row => html`
        <span class=${classes({row: true, [`v${cell.ink}`]: cell.ink})}>${row}</span> `)}
      ${cell.total > cell.rows.length && html`<span class="mute">and ${cell.total - cell.rows.length} more</span>`}</p>
    ${cell.lie && html`<p class="breach"><span class="sign">✗</span> A lie: ${named(parts.from)} sends others something else, or
      relays what it did not receive.</p>`}
    ${cell.fate && html`<p class="breach">${capital(cell.fate)}.</p>`}
    <p class="row-of-buttons"><button onClick=${() => moveTo(cell.since)}>Sent: event ${number(cell.since)}</button>
      ${cell.until > 0 && html`<button onClick=${() => moveTo(cell.until)}>
        ${cell.fate ? "End" : "Received"}: event ${number(cell.until)}</button>`}</p>
    <${Chain} event=${cell.until || cell.since}/>`;
}

/** The vote at a node of an information tree, as a bar of its ballots with the line of the majority. */
function Node({reference, parts}) {
  const {setting} = use(run);
  const {answer, error} = useAnswer({ask: "vote", ref: reference, run: setting});
  const at = use(cursor);
  if (error) return html`<p class="wrong">${capital(error.message)}</p>`;
  if (!answer) return html`<p class="mute">…</p>`;
  const {ballots, counts} = answer;
  const whose = process(parts.of);
  const later = whose?.decided > at;
  const liars = counts.reduce((n, c) => n + c.faulty, 0);
  const inks = [...new Set(ballots.map(b => b.value))].sort();
  const ink = value => value === "0" ? "v1" : value === "1" ? "v2" : value ? `v${3 + inks.indexOf(value) % 6}` : "";
  const sorted = [...ballots].sort((a, b) => a.value < b.value ? -1 : a.value > b.value ? 1 : 0);
  return html`
    <p class="what"><b>${answer.path}</b> in the tree of ${answer.of}</p>
    <p class="mute">received ${answer.in || "nothing"}${answer.out && `, resolved to ${answer.out}`}${later &&
      ` when ${whose.name} decides, at event ${number(whose.decided)}`}</p>
    ${ballots.length > 0 && html`
      <div class="ballots parley-scene" role="group" aria-label="Ballots">
        ${sorted.map(b => html`<button class=${classes({ballot: true, [ink(b.value)]: true, faulty: b.faulty})}
          title=${`${b.path}: ${b.by} votes ${b.value || "nothing"}` +
            (b.faulty ? "; it is faulty" : b.own ? ", as it received it itself" : "")}
          onClick=${() => select(b.ref)}><b>${b.value || "–"}</b><span>${b.by}${b.faulty && " ✗"}</span></button>`)}
        <span class="majority" aria-hidden="true"></span></div>
      <p class="legend">The line is the middle: a value wins with more than half of the ${number(ballots.length)} ballots.</p>`}
    <p>${answer.says}</p>
    ${liars > 0 && html`<p class="mute">${count(liars, "vote")} of ${number(ballots.length)} ${liars === 1 ? "comes" : "come"}
      from faulty processes.</p>`}
    <p class="row-of-buttons"><button onClick=${() => select(filledBy(parts))}>The message that filled it</button>
      ${parts.path.length > 1 && html`<button onClick=${() => select(`${parts.of}/${parts.path.slice(0, -1).join(".")}`)}>
        Its parent</button>`}</p>`;
}

function Process({reference}) {
  const p = process(reference);
  const at = use(cursor), where = use(place), sees = use(observer);
  const {answer} = use(run);
  if (!p) return html`<p class="mute">The run has no such process.</p>`;
  const {faulty, ...flags} = where?.flags ?? {};
  const value = answer.report.values[p.name];
  const indications = answer.report.indications?.[p.name];
  return html`
    <p class="what"><b>${p.name}</b>${p.faulty ? html` <span class="sign">✗</span> faulty` : ", correct"}${p.faulty && p.behavior &&
      `: ${p.behavior}`}</p>
    ${value !== undefined && html`<p>It proposes ${value}.</p>`}
    ${p.decided > 0 && html`<p>It decides ${p.decides} at event ${number(p.decided)}.</p>
      ${p.decided !== at && html`<p class="row-of-buttons"><button onClick=${() => goTo(p.decided)}>To its decision</button></p>`}`}
    ${indications && html`<p>It notifies the layer above: ${indications.join(", ")}.</p>`}
    ${p.faulty && html`<p class="mute">Nothing is promised of a faulty process.</p>`}
    <p class="row-of-buttons">${!p.behavior && html`<button aria-pressed=${sees === p.name}
        onClick=${() => { observer.value = sees === p.name ? "" : p.name; }}>What ${p.name} sees</button>`}
      ${where?.s && answer.rounds.length > 0 && html`<a class="button"
        href=${seatOf(where.s, flags, p.ref, answer.report.verdicts[0]?.property ?? "")}>Take its seat</a>`}</p>`;
}

/** All messages of a process in a round, or a whole round. */
function Round({parts}) {
  const {setting, answer: made} = use(run);
  const {answer} = useAnswer({ask: "tables", run: setting});
  const span = made.rounds.find(r => r.number === parts.round);
  const table = answer?.tables.find(t => t.round === parts.round);
  if (parts.kind === "round" || !table) {
    const sent = table?.cells.flat().filter(c => c.total).length;
    return html`<p class="what"><b>Round ${parts.round}</b></p>
      ${span && html`<p>Events ${number(span.first)} to ${number(span.last)}${sent !== undefined && `, ${count(sent, "message")}`}.</p>
        <p class="row-of-buttons"><button onClick=${() => moveTo(span.first)}>To its beginning</button>
          <button onClick=${() => moveTo(span.last)}>To its end</button></p>`}`;
  }
  const column = table.senders.findIndex(p => p.ref === parts.from);
  return html`<p class="what"><b>${named(parts.from)}</b> in round ${parts.round}</p>
    <ul class="chain">${table.receivers.map((to, r) => {
      const cell = table.cells[r][column];
      return cell?.total > 0 && html`<li class=${classes({faulty: cell.lie})}><button class="plain" onClick=${() => select(cell.ref)}>
        <b>to ${to.name}</b> <code>${cell.rows.slice(0, 5).join(" ")}${cell.total > 5 && " …"}</code>
        ${cell.lie && " ✗ a lie"}</button></li>`;
    })}</ul>`;
}

export function Selected() {
  const ref = use(selection);
  if (!ref) return null;
  const parts = parse(ref);
  const body = {
    event: () => html`<${Event} event=${parts.event}/>`,
    message: () => html`<${Message} parts=${parts}/>`,
    node: () => html`<${Node} reference=${ref} parts=${parts}/>`,
    process: () => html`<${Process} reference=${ref}/>`,
    round: () => html`<${Round} parts=${parts}/>`,
    sender: () => html`<${Round} parts=${parts}/>`,
    none: () => html`<p class="mute">The run has nothing with the name ${ref}.</p>`,
  }[parts.kind];
  return html`
    <section class="card selected-card" aria-labelledby="selected">
      <div class="card-head"><h2 id="selected">Selected</h2>
        <button class="tool" aria-label="Clear the selection" title="Clear the selection (Esc)" onClick=${() => select(ref)}>
          <${Icon} name="close"/></button></div>
      ${body()}
    </section>`;
}
