// How a search ended. Four ends must never be taken for each other: each has its own sign, its own frame and its own words.

import {capital, classes, count, html, number, use} from "../lib.js";
import {openTrace} from "../files.js";
import {notice} from "../store.js";
import {model, same, search, stop} from "../searching.js";
import {linkTo as walkLink} from "../walking.js";
import {Pan} from "./pan.js";
import {Pairs, toWhom} from "./pairs.js";

const ends = {
  exhausted: ["∎", "Exhausted", "Everything that can happen in this model was tried."],
  found: ["✗", "Found", "A run was found; the search ended with it."],
  "budget hit": ["◔", "Budget hit", "The search ended before it had tried everything. Nothing is proven."],
  interrupted: ["■", "Interrupted", "You stopped the search. Nothing is proven."],
};

/** The numbers of a search that runs. */
export function Counts() {
  const {progress, stop: running} = use(search);
  const seconds = (progress?.Took ?? 0) / 1e9;
  const states = Math.max(progress?.States ?? 0, progress?.Outcomes ?? 0);
  const cell = (name, value, title) => html`<div title=${title}><dt>${name}</dt><dd>${value}</dd></div>`;
  return html`
    <section class="card counts" aria-labelledby="counts">
      <div class="card-head"><h2 id="counts" tabindex="-1">
          ${running && html`<span class="busy-sign" aria-hidden="true"></span>`} The search runs</h2>
        <button class="primary" onClick=${stop}>Stop</button></div>
      <dl class="figures">
        ${cell("states", number(states), "Different states that were visited")}
        ${cell("states a second", seconds > 0 ? number(Math.round(states / seconds)) : "–", "On average since the start")}
        ${cell("depth", number(progress?.Depth ?? 0), "Steps from the initial state")}
        ${cell("waiting", number(progress?.Frontier ?? 0), "States that are known and not yet visited")}
        ${cell("seconds", seconds.toFixed(1), "Since the start")}</dl>
      <p class="visually-hidden" role="status">The search runs.</p>
    </section>`;
}

/** How a property fared. Only a search that tried everything says that one holds. */
function judged(j, exhausted) {
  if (!j.tested) return ["–", "none", "could not break in any state that was visited"];
  if (!exhausted) return ["–", "none", "did not break in the states that were visited"];
  return j.promised ? ["✓", "ok", "holds wherever it is promised"] : ["✓", "open", "never breaks, and is not promised"];
}

function Properties({list, broken, exhausted}) {
  return html`
    <h3>Properties</h3>
    <ul class="verdicts">${list.map(j => {
      const breaks = broken.find(f => f.property === j.property);
      const [sign, how, says] = breaks ? ["✗", breaks.promised ? "bad" : "broken", breaks.promised ? "VIOLATED" : "breaks, not promised"]
        : judged(j, exhausted);
      const why = [j.lacks && `${j.promised ? "not promised in some runs" : "not promised"}: ${j.lacks}`,
        j.vacuous && `${j.tested ? "nothing to test in some runs" : "nothing to test"}: ${j.vacuous}`].filter(Boolean);
      return html`<li class=${how}><span class="sign" aria-hidden="true">${sign}</span>
        <div><p><b>${j.property}</b> ${says}</p>${why.length > 0 && html`<p class="why">${capital(why.join("; "))}</p>`}</div></li>`;
    })}</ul>`;
}

/** The run that was found, in words, with the way to see it. */
function Finding({answer, of}) {
  const [finding] = answer.findings;
  const show = () => openTrace(answer.trace, "found by a search", answer.trail ? walkLink(of, answer.trail) : "")
    .catch(err => { notice.value = err.message; });
  return html`
    <div class="finding">
      <h3>${answer.heading || "The run"}</h3>
      <ol class="story-of">${finding.story.map(line => html`<li>${line}</li>`)}</ol>
      ${answer.trace && html`<p class="row-of-buttons"><button class="primary" onClick=${show}>Open the run</button>
        ${answer.trail && html`<a class="button" href=${walkLink(of, answer.trail)}>Walk it step by step</a>`}
        <span class="mute">as a picture that you can move through, or move by move</span></p>`}</div>`;
}

/** The end of the last search. */
export function End() {
  const {kind, answer, error, outcome, progress, model: of} = use(search);
  const stale = !same(use(model), of);
  if (error) {
    return html`<section class="card end"><p class="wrong" id="end" tabindex="-1" role="alert">${capital(error.message)}</p></section>`;
  }
  const [sign, title, says] = ends[outcome] ?? ["?", capital(outcome), ""];
  const pairs = kind === "pairs" && answer;
  return html`
    <section class=${classes({"card": true, end: true, [outcome.replace(" ", "-")]: true})} aria-labelledby="end">
      <div class="card-head"><h2 id="end" tabindex="-1"><span class="end-sign" aria-hidden="true">${sign}</span> ${title}</h2>
        ${stale && html`<span class="tag">of the model before the change: ${of.protocol}</span>`}</div>
      <p class="mute" role="status">${pairs && outcome === "found" ? "Runs were found that a process cannot tell apart." : says}</p>
      ${answer && !(pairs && answer.pairs.length) && html`<p class="verdict-line">${capital(answer.verdict)}</p>`}
      ${!answer && progress && html`<p class="verdict-line">${count(progress.States, "state")} were visited before.</p>`}
      ${pairs && answer.pairs.length > 0 && html`<h3>What can ${toWhom(answer.pairs)} tell apart?</h3><${Pairs} answer=${answer}/>`}
      ${answer?.findings?.length > 0 && html`<${Finding} answer=${answer} of=${of}/>`}
      ${answer?.judged?.length > 0 && html`<${Properties} list=${answer.judged} broken=${answer.findings}
        exhausted=${outcome === "exhausted"}/>`}
      ${answer?.counted && html`<ul class="counted">${answer.counted.map(line => html`<li>${capital(line)}</li>`)}</ul>`}
      ${answer?.clauses?.length > 0 && html`<${Clauses} list=${answer.clauses}/>`}
    </section>`;
}

/** How often each kind of step ran: one that never ran was not tested. */
function Clauses({list}) {
  return html`
    <details class="fold"><summary>What the protocol did <span class="mute">how often each kind of step ran</span></summary>
      <${Pan} label="Steps"><table class="cost"><tbody>${list.map(c => html`
        <tr><th scope="row">${c.name}</th><td>${number(c.runs)}</td></tr>`)}</tbody></table><//></details>`;
}
