// The messages of a round as tables: by receiver, as the article's Table 1, or by content, as its Table 2. The rows
// fill as the cursor passes.

import {signal} from "../vendor/signals.js";
import {classes, html, use, useAnswer, useState} from "../lib.js";
import {useSight} from "../knowing.js";
import {useShown} from "../shown.js";
import {byContent, roundAt} from "../store.js";
import {useMatcher} from "../selection.js";
import {gridKeys} from "./grid.js";
import {Pan} from "./pan.js";

const mostRows = 6;

/** What a cell shows at an event: nothing, a message on its way, or its rows. */
const stage = (cell, at) => cell.since > at ? "future" : cell.until > at ? "flying" : "there";

/** A cell in words. */
const describe = (cell, from, to) =>
  `${from.name} to ${to.name}: ${cell.rows.join(" ")}${cell.total > cell.rows.length ? ` and ${cell.total - cell.rows.length} more` : ""}` +
  (cell.lie ? ", a lie" : "") + (cell.fate ? `, ${cell.fate}` : "");

/** The rows of a message, the first ones if there are many. */
function Rows({cell}) {
  const rest = cell.total - Math.min(cell.rows.length, mostRows);
  return html`${cell.rows.slice(0, mostRows).map(row => html`<div>${row}</div>`)}${rest > 0 && html`<div class="mute">+${rest}</div>`}`;
}

function ByReceiver({table, at, matches}) {
  const {select} = useShown(), sees = useSight();
  const head = p => html`<span>${p.name}</span>${p.faulty && html`<span class="sign" title="faulty">✗</span>`}`;
  return html`
    <table class="parley-scene messages" role="grid" aria-label=${`Messages of round ${table.round}: a row for each receiver`}
      onKeyDown=${gridKeys}>
      <thead><tr><th class="corner"><span class="visually-hidden">receiver</span></th>${table.senders.map(p => html`
        <th scope="col" class=${classes({faulty: p.faulty, picked: matches(`r${table.round}/${p.ref}`)})}>${head(p)}</th>`)}</tr></thead>
      <tbody>${table.receivers.map((to, r) => html`<tr>
        <th scope="row" class=${classes({faulty: to.faulty})}>${head(to)}</th>
        ${table.senders.map((from, c) => {
          const cell = table.cells[r][c];
          const first = r === 0 && c === 0 ? 0 : -1;
          if (!cell.total) {
            return html`<td class=${from.ref === to.ref ? "self" : "void"} role="gridcell" tabindex=${first}
              aria-label=${`${from.name} to ${to.name}: nothing`}>${from.ref !== to.ref && "–"}</td>`;
          }
          const how = stage(cell, at);
          return html`<td role="gridcell" data-ref=${cell.ref} tabindex=${first}
            title=${how === "future" ? "" : describe(cell, from, to)} aria-selected=${matches(cell.ref)}
            class=${classes({[`v${cell.ink}`]: cell.ink && how !== "future", lie: cell.lie && how !== "future", [how]: true,
              lost: cell.fate && how !== "future", picked: matches(cell.ref), unseen: sees && !sees(cell.ref)})}
            onClick=${() => select(cell.ref)}>${how === "future" ? "" : html`<${Rows} cell=${cell}/>`}
            ${cell.fate && how !== "future" && html`<div class="fate">${cell.fate}</div>`}</td>`;
        })}</tr>`)}</tbody>
    </table>`;
}

/** Groups the messages of each sender by what they say. */
function contents(table) {
  return table.senders.flatMap((from, c) => {
    const groups = new Map();
    table.receivers.forEach((to, r) => {
      const cell = table.cells[r][c];
      if (!cell.total) return;
      const key = JSON.stringify([cell.rows, cell.total, cell.fate]);
      if (!groups.has(key)) groups.set(key, {from, cell, to: [], since: cell.since, refs: []});
      const group = groups.get(key);
      group.to.push(to);
      group.refs.push(cell.ref);
      group.since = Math.min(group.since, cell.since);
    });
    return [...groups.values()];
  });
}

function ByContent({table, at, matches}) {
  const {select} = useShown();
  return html`
    <table class="parley-scene messages contents" role="grid" aria-label=${`Messages of round ${table.round}: a row for each content`}
      onKeyDown=${gridKeys}>
      <thead><tr><th scope="col">from</th><th scope="col">sends</th><th scope="col">to</th></tr></thead>
      <tbody>${contents(table).map(({from, cell, to, since, refs}, i) => html`<tr>
        <th scope="row" class=${classes({faulty: from.faulty})}>${from.name}${from.faulty && html`<span class="sign">✗</span>`}</th>
        <td role="gridcell" tabindex=${i ? -1 : 0} aria-selected=${refs.some(matches)} class=${classes({
          [`v${cell.ink}`]: cell.ink && since <= at, lie: cell.lie && since <= at, future: since > at, picked: refs.some(matches)})}
          onClick=${() => select(refs.length > 1 ? refs[0].split("/").slice(0, 2).join("/") : refs[0])}>
          ${since <= at ? html`<${Rows} cell=${cell}/>` : ""}</td>
        <td class="who">${to.length === table.receivers.length && to.length > 1 ? "all" : to.map(p => p.name).join(" ")}
          ${cell.fate && html`<div class="fate">${cell.fate.replace(/ \S+$/, "")}</div>`}</td></tr>`)}</tbody>
    </table>`;
}

/** Whether the page is being printed: on paper all rounds are there at once. */
const printing = signal(false);
addEventListener("beforeprint", () => { printing.value = true; });
addEventListener("afterprint", () => { printing.value = false; });

export function Tables() {
  const {id, run, cursor} = useShown();
  const {setting, answer} = use(run);
  const got = useAnswer(answer?.rounds.length ? {ask: "tables", run: setting} : null);
  const at = use(cursor), contentsFirst = use(byContent), onPaper = use(printing);
  const matches = useMatcher();
  const now = Math.max(0, roundAt(at, {answer}));
  const [chosen, choose] = useState({round: -1, at: -1});
  const tables = got.answer?.tables;
  if (!tables?.length) return null;
  // A chosen round stays until the cursor moves to another one.
  const wanted = chosen.at === now ? chosen.round : now;
  const table = tables.find(t => t.round === wanted) ?? tables.findLast(t => t.round <= wanted) ?? tables[0];
  const form = contentsFirst ? ByContent : ByReceiver;
  const shown = onPaper ? tables.filter(t => t.round <= now) : [table];
  const lies = table.cells.flat().filter(c => c.lie && c.since <= at).length;
  return html`
    <section class="card tables" aria-labelledby=${id + "tables"}>
      <div class="card-head"><h2 id=${id + "tables"}>Round ${table.round}</h2>
        <div class="segments" role="group" aria-label="Round">${tables.map(t => html`<button aria-pressed=${t === table}
          onClick=${() => choose({round: t.round, at: now})}>${t.round}</button>`)}</div>
        <div class="segments" role="group" aria-label="Order">
          <button aria-pressed=${!contentsFirst} onClick=${() => { byContent.value = false; }}>by receiver</button>
          <button aria-pressed=${contentsFirst} onClick=${() => { byContent.value = true; }}>by content</button></div></div>
      ${shown.map(t => html`<${Pan} key=${t.round} label=${`Messages of round ${t.round}`}>
        ${shown.length > 1 && html`<h3>Round ${t.round}</h3>`}<${form} table=${t} at=${at} matches=${matches}/><//>`)}
      ${table.reading && html`<p class="legend">${table.reading}</p>`}
      ${lies > 0 && html`<p class="legend"><span class="lie-sign" aria-hidden="true"></span> ${lies === 1
        ? "A marked cell is a lie" : `${lies} marked cells are lies`}: the sender sent others something else, or relayed
        what it did not receive.</p>`}
    </section>`;
}
