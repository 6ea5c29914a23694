// The information tree of a process. It fills as messages arrive. When its owner decides, it folds up from the leaves
// to the root, one rank at a step: the votes below a node give its output.

import {signal} from "../vendor/signals.js";
import {classes, html, still, use, useAnswer, useEffect, useRef} from "../lib.js";
import {cursor, named, owner, run, selection} from "../store.js";
import {parse} from "../selection.js";
import {Picture} from "./picture.js";

/** How many ranks are folded while the folding is shown; null: as the cursor says. */
const folded = signal(null);

const rankOf = mark => parse(mark.dataset.ref).path.length - 1;

/** Finds the outputs in a picture, and returns the function that hides those of the ranks that are not folded yet. */
function outputs(svg) {
  const nodes = [];
  const inputInk = new Map();
  for (const text of svg.querySelectorAll("text.io[data-ref]")) {
    const parts = [...text.querySelectorAll("tspan")];
    if (parts.length < 3) continue;
    nodes.push({rank: rankOf(text), hidden: parts.slice(1)});
    inputInk.set(text.dataset.ref, /\bv\d\b/.exec(parts[0].getAttribute("class"))?.[0] ?? "");
  }
  for (const text of svg.querySelectorAll("text.note[data-ref]")) nodes.push({rank: 0, hidden: [text]});
  // The ink of a node is that of its output; before that, of its input.
  const inks = [];
  for (const mark of svg.querySelectorAll(".node[data-ref], .edge[data-ref], .outvoted[data-ref], .shadow[data-ref]")) {
    const out = /\bv\d\b/.exec(mark.getAttribute("class"))?.[0] ?? "";
    const input = inputInk.get(mark.dataset.ref);
    if (input !== undefined && input !== out) inks.push({mark, rank: rankOf(mark), input, out});
  }
  const ranks = Math.max(0, ...nodes.map(n => n.rank)) + 1;
  const show = done => {
    for (const {rank, hidden} of nodes) {
      for (const part of hidden) part.classList.toggle("unfolded", rank < ranks - done);
    }
    for (const {mark, rank, input, out} of inks) {
      const is = rank < ranks - done ? [input, out] : [out, input];
      if (is[1]) mark.classList.remove(is[1]);
      if (is[0]) mark.classList.add(is[0]);
    }
  };
  return {ranks, show};
}

export function Tree() {
  const {answer} = use(run);
  const of = use(owner) || answer?.owner;
  const step = use(folded);
  const at = use(cursor);
  const selected = use(selection);
  const shown = useRef(null);
  const process = answer?.processes.find(p => p.name === of);
  const decided = process?.decided && process.decided <= at;

  const place = event => {
    const ends = process?.decided || answer.report.events;
    shown.current?.show(folded.peek() ?? (event >= ends ? Infinity : 0));
  };
  const prepare = svg => {
    shown.current = outputs(svg);
    return place;
  };
  useEffect(() => { place(cursor.peek()); }, [step]);
  useEffect(() => { folded.value = null; }, [at, of]);
  useEffect(() => { // a selected node is in the tree that is shown
    const parts = parse(selected);
    const name = parts.kind === "node" && named(parts.of);
    if (name && name !== of && answer.owners.includes(name)) owner.value = name;
  }, [selected]);
  useEffect(() => {
    if (step === null) return;
    const end = step >= (shown.current?.ranks ?? 0);
    const timer = setTimeout(() => { folded.value = end ? null : step + 1; }, still() ? 1600 : 900);
    return () => clearTimeout(timer);
  }, [step]);

  const tools = html`
    <div class="segments" role="group" aria-label="Whose tree">${answer.owners.map(name => html`
      <button aria-pressed=${name === of} onClick=${() => { owner.value = name === answer.owner ? "" : name; }}>${name}</button>`)}</div>
    <button disabled=${!decided} title=${decided ? "Show the votes rank by rank" : `${of} has not decided yet`}
      onClick=${() => { folded.value = 0; }}>Fold up</button>`;
  const foot = html`<${RootVote} of=${process?.ref} shown=${Boolean(decided) && step === null}/>`;
  return html`<${Picture} name="tree" of=${of} tools=${tools} prepare=${prepare} foot=${foot}/>`;
}

/** The last vote of a tree, in words. */
function RootVote({of, shown}) {
  const {setting, answer} = use(run);
  const source = answer.processes.findIndex(p => p.source) + 1;
  const got = useAnswer(of && source ? {ask: "vote", ref: `${of}/${source}`, run: setting} : null);
  if (!got.answer?.ballots.length) return null;
  return html`<p class=${classes({legend: true, hidden: !shown})}>${named(of)} folds its tree: the root has the votes
    ${" " + got.answer.says}.</p>`;
}
