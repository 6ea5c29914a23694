// Be the traitor: levels in which the reader chooses what faulty processes send, and learns what that can break.

import {capital, classes, html, use, useAnswer, useEffect, useRef} from "../lib.js";
import {act, done, finish, forget, game, levelOf, levels, linkTo, past, settingOf, startOver, undo} from "../game.js";
import {view} from "../store.js";
import {whole} from "../address.js";
import {Copy} from "../parts/export.js";
import {Apart, Outcome, Theorem, verdictOf} from "../parts/outcome.js";
import {Prove} from "../parts/prove.js";
import {Seats, Sent} from "../parts/seat.js";

const signs = {won: ["✓", "won"], shown: ["◐", "shown by the engine"], proven: ["∎", "proven"],
  sampled: ["≈", "not found in many runs"]};

function Levels({current}) {
  const finished = use(done);
  const row = useRef(null);
  useEffect(() => { // where the list is a row that scrolls, the level is in view
    const at = row.current.querySelector("[aria-current]");
    if (row.current.scrollWidth > row.current.clientWidth) row.current.scrollLeft = at.offsetLeft - row.current.clientWidth / 2;
  }, [current]);
  return html`
    <nav class="card levels" aria-labelledby="levels"><h2 id="levels">Levels</h2>
      <ol ref=${row}>${levels.peek().map((l, i) => {
        const [sign, says] = signs[finished[l.id]] ?? ["", ""];
        return html`<li><a href=${linkTo(l.id)} aria-current=${l.id === current ? "step" : null}>
          <span class="number">${i + 1}</span><span class="name">${l.title}</span>
          ${sign && html`<span class="sign ok" title=${says} aria-label=${says}>${sign}</span>`}</a></li>`;
      })}</ol>
      <p class="why">✓ won by you · ◐ shown by the engine · ∎ proven · ≈ not found in many runs</p>
      <p class="why">A level that cannot be won by lies is won by “Prove it”: the engine tries all adversaries and counts them. Where
        these are too many, it makes many runs, and proves nothing.</p>
      ${Object.keys(finished).length > 0 && html`<p><button onClick=${forget}>Forget my progress</button></p>`}</nav>`;
}

/** What the seats of a level can send with the moves so far, and the messages of all; the last answers, until others come. */
function useMenus({seats}, setting) {
  const got = [0, 1, 2].map(i => useAnswer(seats?.[i] ? {ask: "seat", of: seats[i], run: setting} : null));
  const tables = useAnswer(seats?.length ? {ask: "tables", run: setting} : null);
  const all = seats?.length && seats.every((_, i) => got[i].answer);
  return {
    menus: all ? Object.fromEntries(seats.map((seat, i) => [seat, got[i].answer])) : null,
    tables: tables.answer?.tables, error: got.find(g => g.error)?.error,
  };
}

/** Whether something is chosen. */
const begun = g => g.round !== -1 || Object.values(g.moves).some(list => list.length) || Object.values(g.set).some(Boolean);

/** The dials of a level: parts of a plan, instead of messages. */
function Dials({level, set}) {
  return level.dials.map(dial => html`
    <div class="field"><label for=${"dial-" + dial.name}>${dial.asks}</label>
      <select id=${"dial-" + dial.name} onChange=${e => act({set: {...set, [dial.name]: e.target.value}, helped: false})}>
        <option value="" selected=${!set[dial.name]}>choose …</option>
        ${dial.choices.map(c => html`<option value=${c.value} selected=${c.value === set[dial.name]}>${c.says}</option>`)}
      </select></div>`);
}

/** What the reader does in a level: the rounds that are sent, the one that is played, and the buttons. */
function Play({level, g, menus, rounds, round, tables}) {
  const steps = use(past).length;
  const sent = round === null ? rounds : rounds.filter(r => r < round);
  const place = useRef(null);
  useEffect(() => { // after a round is closed, the next one is where the reader goes on
    if (steps) (round === null ? document.getElementById("outcome") : place.current)?.focus({preventScroll: true});
  }, [round]);
  const seats = level.seats?.length > 0;
  const close = () => act({round: rounds.find(r => r > round) ?? null});
  return html`
    <section class="card play" aria-labelledby="play">
      <div class="card-head"><h2 id="play" ref=${place} tabindex="-1">${seats ? "Your messages" : "Your plan"}</h2>
        ${seats && round !== null && html`<span class="mute">
          round ${round}${rounds.length > 1 && ` of ${rounds[0]}..${rounds.at(-1)}`}</span>`}</div>
      <p class="task">${level.task}</p>
      ${seats && menus && html`
        ${sent.length > 0 && html`<ol class="all-sent">${sent.map(r => html`
          <${Sent} key=${r} level=${level} menus=${menus} round=${r} change=${() => act({round: r})}/>`)}</ol>`}
        ${round !== null && html`<${Seats} level=${level} game=${g} menus=${menus} round=${round} tables=${tables}/>`}`}
      ${seats && !menus && html`<p class="mute">The menu is being made …</p>`}
      ${!seats && html`<${Dials} level=${level} set=${g.set}/>`}
      <div class="row-of-buttons main-buttons">
        ${seats && round !== null && html`<button class="primary" disabled=${!menus} onClick=${close}>Send, and close the round</button>`}
        <button disabled=${!steps} onClick=${undo} title="Ctrl+Z">Undo</button>
        <button disabled=${!steps && !begun(g)} onClick=${startOver}>Start over</button></div>
      <${Prove} key=${level.id} level=${level} round=${round}/>
    </section>`;
}

function Level({level, g}) {
  const setting = settingOf(g, level);
  const {menus, tables, error} = useMenus(level, setting);
  const seats = level.seats?.length > 0;
  const rounds = menus ? [...new Set(Object.values(menus).flatMap(m => m.turns.filter(t => t.choices.length).map(t => t.round)))]
    .sort((a, b) => a - b) : [];
  const round = g.round === null ? null : menus ? rounds.find(r => r >= g.round) ?? null : 0;
  const sent = seats ? round === null : Object.values(g.set).some(Boolean);
  const got = useAnswer(sent ? {ask: "run", run: setting} : null);
  const current = got.question === JSON.stringify({ask: "run", run: setting});
  const broken = current && got.answer && Boolean(verdictOf(got.answer, level)?.broken);
  useEffect(() => {
    if (sent && broken && level.can) finish(level.id, g.helped ? "shown" : "won");
  }, [sent, broken, level.id]);
  const how = use(done)[level.id];
  const next = levels.peek()[levels.peek().indexOf(level) + 1];
  return html`
    <${Play} level=${level} g=${g} menus=${menus} rounds=${rounds} round=${round} tables=${tables}/>
    <div class="ends"><${Outcome} level=${level} setting=${setting} answer=${sent ? got.answer : null} sent=${sent}/>
      ${(error ?? got.error) && html`<p class="wrong">${capital((error ?? got.error).message)}</p>`}
      ${how && html`<${Theorem} level=${level} next=${next} how=${how}/>`}</div>
    ${how && html`<${Apart} key=${level.id} level=${level}/>`}`;
}

export function Traitor() {
  const all = useAnswer({ask: "levels"});
  useEffect(() => { if (all.answer) levels.value = all.answer.levels; }, [all.answer]);
  use(levels);
  const g = use(game);
  const level = levelOf(g);
  useEffect(() => {
    const keys = event => {
      if (view.peek() !== "traitor" || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z" || event.shiftKey) return;
      event.preventDefault();
      undo();
    };
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);
  if (!level) return html`<p class=${classes({boot: true, wrong: all.error})}>${all.error?.message ?? "The levels are coming …"}</p>`;
  const {n, m} = level.flags, number = levels.peek().indexOf(level) + 1;
  return html`
    <div class="title far"><div><h1>${level.title}</h1>
      <p class="mute">
        ${number > 0 && `level ${number} of ${levels.peek().length} · `}${level.protocol}${n && `, n = ${n}`}${m && `, m = ${m}`}
        ${level.seats?.length > 0 && ` · you are ${level.seats.join(" and ")}`}</p>
      <p class="words"><span>In this game you are on the side of the faults: choose what a faulty process sends, or what fails, and
        try to break a property. Where the theorem says that nobody can, let the engine prove it.</span></p></div>
      <${Copy} text=${whole} label="Copy link" done="Link copied"/></div>
    <div class="traitor"><${Levels} current=${level.id}/><${Level} key=${level.id} level=${level} g=${g}/></div>`;
}
