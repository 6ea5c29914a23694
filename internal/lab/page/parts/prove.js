// What the engine does in the traitor's place: it finds lies that break a property, or tries all and finds none.

import {signal} from "../vendor/signals.js";
import {capital, count, html, number, use, useEffect} from "../lib.js";
import {ask} from "../engine.js";
import {act, dialsIn, finish, game, movesIn, settingOf} from "../game.js";

/**
 * The search that runs or ran last.
 * @type {import("../vendor/signals.js").Signal<null | {level: string, kind: string, stop?: AbortController,
 *     progress?: any, answer?: any, error?: Error}>}
 */
const job = signal(null);

const seconds = {break: 60, prove: 300, sample: 300};

/**
 * Tries everything that the seats of a level could send: to prove, from the beginning, and to break, from the round on
 * that is played now. After the last round it begins anew.
 */
async function search(level, kind, round) {
  job.peek()?.stop?.abort();
  const stop = new AbortController();
  const from = kind === "break" ? round ?? 0 : 0;
  const mine = {level: level.id, kind, stop};
  const mineStill = () => job.peek()?.stop === stop;
  job.value = mine;
  try {
    const question = kind === "sample" ? {ask: "sample", level: level.id} : {
      ask: "search", run: settingOf(from ? game.peek() : {moves: {}, set: {}}, level), free: level.seats, from,
      property: level.property, split: level.split,
    };
    const answer = await ask({...question, seconds: seconds[kind]}, {
      signal: stop.signal, onProgress: progress => { if (mineStill()) job.value = {...job.peek(), progress}; },
    });
    if (!mineStill()) return;
    job.value = {level: level.id, kind, from, answer};
    if (answer.outcome === "exhausted" && !from) finish(level.id, "proven");
    if (answer.outcome === "not found") finish(level.id, "sampled");
    if (answer.outcome === "found" && kind === "break") play(level, answer.flag);
  } catch (error) {
    if (mineStill()) job.value = {level: level.id, kind, error, progress: job.peek().progress};
  }
}

/** Sends what breaks the property. */
function play(level, flag) {
  act({moves: movesIn(flag), round: null, helped: true});
}

/** Shows the run that the level knows, where a search would take too long. */
function show(level) {
  act({
    moves: movesIn(level.wins.faulty ?? ""), set: dialsIn(level.wins, level), round: null, helped: true,
  });
}

/** How the claim of a level without a search is known. */
const known = {
  run: "That it can be done is known by a run that does it: “Break it for me” shows that run.",
  seeds: "Too many runs are possible to try all. The engine can make many of them, which proves nothing.",
};

/** How far a search is. */
function Progress({progress, stop}) {
  return html`
    <p class="searching" role="status"><span class="busy-sign" aria-hidden="true"></span>
      ${!progress ? "Searching …" : progress.runs ? count(progress.runs, "run")
        : count(Math.max(progress.States, progress.Outcomes), "state") + ` after ${(progress.Took / 1e9).toFixed(1)} s`}
      <button onClick=${() => stop.abort()}>Stop</button></p>`;
}

/** What a search found out. */
function Result({level, kind, from, answer}) {
  const {outcome, states, adversaries, property, why} = answer;
  if (kind === "sample") return html`<${Sampled} level=${level} answer=${answer}/>`;
  const tried = Number(adversaries) ? count(adversaries, "adversary", "adversaries") : count(states, "state");
  if (outcome === "exhausted" && from) {
    return html`<p class="tried open" role="status"><span class="sign" aria-hidden="true">∎</span>
      <span><b>From round ${from} on, nothing breaks ${level.property}.</b> Tried ${tried}, after what was sent in the rounds
      before it.</span></p>`;
  }
  if (outcome === "exhausted") {
    return html`<p class="tried proven" role="status"><span class="sign ok" aria-hidden="true">∎</span>
      <span><b>Tried ${tried}: none breaks ${level.property}.</b> Whatever ${level.seats.join(" and ")} sends, it holds.
      ${!level.can && " To prove that is to win this level."}</span></p>`;
  }
  if (outcome === "found") {
    return html`<p class="tried" role="status"><span class="sign" aria-hidden="true">✗</span>
      <span><b>Found after ${count(states, "state")}:</b> ${property} breaks: ${why}.</span>
      ${kind === "prove" && html`<button onClick=${() => play(level, answer.flag)}>Show me</button>`}</p>`;
  }
  return html`<p class="tried open" role="status"><span class="sign" aria-hidden="true">◔</span>
    <span><b>Not proven.</b> The search ended (${outcome}) after ${number(states)} states, before it had tried everything.</span></p>`;
}

/** What came of many runs. */
function Sampled({level, answer: {outcome, runs, why, flags}}) {
  const says = {
    "not found": html`<b>Not found in ${count(runs, "run")}.</b> That is no proof: the theorem below is.`,
    found: html`<b>Found with seed ${flags?.seed}:</b> ${level.property} breaks: ${why}.`,
  }[outcome] ?? html`<b>Not finished.</b> The search ended (${outcome}) after ${count(runs, "run")}.`;
  return html`<p class=${outcome === "not found" ? "tried sampled" : "tried open"} role="status">
    <span class="sign" aria-hidden="true">${outcome === "found" ? "✗" : "≈"}</span><span>${says}</span></p>`;
}

/** The buttons, and what came of the last one. */
export function Prove({level, round}) {
  const now = use(job);
  const mine = now?.level === level.id ? now : null;
  useEffect(() => () => { // it may run when the search of the next level has begun
    if (job.peek()?.level !== level.id) return;
    job.peek().stop?.abort();
    job.value = null;
  }, [level.id]);
  const searched = level.proof === "search", running = Boolean(mine?.stop);
  return html`
    <div class="prove">
      <div class="row-of-buttons">
        ${(searched || level.can) && html`<button disabled=${running}
          onClick=${() => searched ? search(level, "break", round) : show(level)}>Break it for me</button>`}
        ${searched && html`<button disabled=${running} onClick=${() => search(level, "prove")}>Prove it</button>`}
        ${level.proof === "seeds" && html`<button disabled=${running} onClick=${() => search(level, "sample")}>
          Try ${number(level.seeds)} runs</button>`}</div>
      ${!searched && html`<p class="why">${known[level.proof]}</p>`}
      ${running && html`<${Progress} progress=${mine.progress} stop=${mine.stop}/>`}
      ${mine?.answer && html`<${Result} level=${level} kind=${mine.kind} from=${mine.from} answer=${mine.answer}/>`}
      ${mine?.error && html`<p class="tried open" role="status"><span class="sign" aria-hidden="true">■</span>
        <span>${mine.error.name === "AbortError" ? html`<b>Stopped.</b> Nothing is proven.` : capital(mine.error.message)}</span></p>`}
    </div>`;
}
