// The seat of a traitor: what it could send to each receiver of a round, as options to choose from.

import {classes, count, html, useEffect, useRef, useState} from "../lib.js";
import {act, answered} from "../game.js";

/** The name of an option: what is sent, in the words of the protocol. */
const nameOf = option => option.says === "nothing" ? option.honest ? "nothing" : "say nothing" : option.says;

function Option({option, checked, name, choose}) {
  const how = option.honest ? "honest" : option.silent ? "silent" : "lie";
  return html`
    <label class=${classes({option: true, [how]: true, chosen: checked})}>
      <input type="radio" name=${name} checked=${checked} onChange=${choose}/>
      <span class=${how === "silent" ? "" : "said"}>${nameOf(option)}</span>
      ${how === "honest" && html`<span class="mute">honest</span>`}
      ${how === "lie" && html`<span class="sign" aria-label="a lie">✗</span>`}</label>`;
}

/** The moves that answer every choice of a turn in one manner; a choice without such an option stays honest. */
const inManner = (turn, fits) => turn.choices.map(c => (c.options.find(fits) ?? c.options[0]).move);

const manners = [
  ["honest", o => o.honest], ["the same lie", o => !o.honest && !o.silent], ["nothing", o => o.silent],
];

/**
 * The turns of a seat in one round.
 * @param {{seat: string, turns: any[], moves: string[], change: (moves: string[]) => void}} props
 */
function Turns({seat, turns, moves, change}) {
  const put = list => change(list.reduce(answered, moves));
  const offered = manners.filter(([, fits]) => turns.every(t => t.choices.some(c => c.options.some(fits))));
  // What one receiver gets, for all: the same answers to the same choices.
  const asTo = turn => put(turns.flatMap(t => t.choices.map((c, i) => {
    const answer = turn.choices[i]?.answer ?? 0;
    return (c.options.find(o => o.answer === answer) ?? c.options[0]).move;
  })));
  const alike = turns.every(t => t.says === turns[0].says);
  return html`
    ${turns.length > 1 && html`
      <div class="alike" role="group" aria-label="The same to all"><span class="mute">To all alike:</span>
        ${offered.map(([name, fits]) => html`<button onClick=${() => put(turns.flatMap(t => inManner(t, fits)))}>${name}</button>`)}
      </div>`}
    <div class="turns">${turns.map(turn => html`
      <fieldset class="turn" key=${turn.to}><legend>to ${turn.to}</legend>
        ${turn.choices.map(c => html`
          <div class="choice" role="radiogroup"
            aria-label=${`to ${turn.to}` + (turn.choices.length > 1 ? `, message ${c.choice + 1}` : "")}>
            ${c.options.map(o => html`
              <${Option} key=${o.answer} option=${o} checked=${o.answer === chosen(c)} name=${`${seat}-${turn.to}-${c.choice}`}
                choose=${() => put([o.move])}/>`)}</div>`)}
        ${turn.more > 0 && html`<p class="mute">${count(turn.more, "more message")}, sent honestly.</p>`}
        ${turns.length > 1 && !alike && html`<button class="plain copy" onClick=${() => asTo(turn)}>the same to all</button>`}
      </fieldset>`)}</div>`;
}

/** The answer that is given: an option that sends the same may stand for it. */
const chosen = c => c.options.some(o => o.answer === c.answer) ? c.answer : 0;

/** What a seat has received before a round. */
function Heard({seat, round, tables}) {
  const heard = [];
  for (const table of tables ?? []) {
    if (table.round >= round) break;
    const row = table.receivers.findIndex(p => p.name === seat);
    (table.cells[row] ?? []).forEach((cell, i) => {
      if (cell.rows.length && table.senders[i].name !== seat) heard.push({from: table.senders[i].name, says: cell.rows.join(" ")});
    });
  }
  if (!heard.length) return html`<p class="mute">${seat} has received nothing so far.</p>`;
  return html`<p class="heard"><span class="mute">${seat} has received</span> ${heard.map((h, i) => html`${i > 0 && ", "}
    <code>${h.says}</code> <span class="mute">from ${h.from}</span>`)}<span class="mute">.</span></p>`;
}

/**
 * The round that is played, with a tab for each seat.
 * @param {{level: any, game: import("../game.js").Game, menus: Record<string, any>, round: number, tables: any[]}} props
 */
export function Seats({level, game, menus, round, tables}) {
  const turnsOf = seat => menus[seat].turns.filter(t => t.round === round && t.choices.length);
  const seats = level.seats.filter(seat => turnsOf(seat).length);
  const [picked, pick] = useState("");
  const current = seats.includes(picked) ? picked : seats[0];
  const tabs = useRef(null);
  useEffect(() => pick(""), [round]);
  const keys = event => {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key];
    if (!step) return;
    event.preventDefault();
    const next = (seats.indexOf(current) + step + seats.length) % seats.length;
    pick(seats[next]);
    tabs.current.children[next].focus();
  };
  const lies = seat => turnsOf(seat).filter(t => t.says !== t.honest).length;
  return html`
    ${seats.length > 1 && html`
      <div class="segments tabs" role="tablist" aria-label="Seats" ref=${tabs} onKeyDown=${keys}>${seats.map(seat => html`
        <button role="tab" id=${"tab-" + seat} aria-selected=${seat === current}
          aria-controls="seat" tabindex=${seat === current ? 0 : -1} onClick=${() => pick(seat)}>${seat}
          ${lies(seat) > 0 && html` <span class="sign" aria-label=${count(lies(seat), "lie")}>✗ ${lies(seat)}</span>`}</button>`)}</div>`}
    <div id="seat" role=${seats.length > 1 ? "tabpanel" : null} aria-labelledby=${seats.length > 1 ? "tab-" + current : null}>
      <${Heard} seat=${current} round=${round} tables=${tables}/>
      <${Turns} seat=${current} turns=${turnsOf(current)} moves=${game.moves[current] ?? []}
        change=${list => act({moves: {...game.moves, [current]: list}, helped: false})}/></div>`;
}

/** What was sent in a round, in a line for each seat. */
export function Sent({level, menus, round, change}) {
  return html`
    <li class="sent"><div>${level.seats.map(seat => {
      const turns = menus[seat].turns.filter(t => t.round === round && t.choices.length);
      return turns.length > 0 && html`<p><b>${seat}</b> <span class="mute">in round ${round}:</span> ${turns.map((t, i) => html`
        ${i > 0 && " · "}<span class="to">to ${t.to}</span> <code class=${classes({lie: t.says !== t.honest})}>${t.says}</code>
        ${t.says !== t.honest && html`<span class="sign" aria-label="a lie">✗</span>`}`)}</p>`;
    })}</div>
    <button onClick=${change}>Change</button></li>`;
}
