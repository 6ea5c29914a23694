// The information tree of a process. It fills as messages arrive. When its owner decides, it folds up from the leaves
// to the root, one rank at a step: the votes below a node give its output.

import {signal} from "../vendor/signals.js";
import {classes, count, html, still, use, useAnswer, useEffect, useRef} from "../lib.js";
import {beside, cursor, named, owner, run, select, selection} from "../store.js";
import {parse} from "../selection.js";
import {Picture} from "./picture.js";

/** How many ranks are folded while the folding is shown; null: as the cursor says. */
const folded = signal(null);

const rankOf = mark => parse(mark.dataset.ref).path.length - 1;

/** The pictures of trees that are shown, by the process. */
const pictures = new Map();

/** The nodes in which two trees differ. */
const differing = signal(/** @type {string[]} */ ([]));

/** Marks the nodes in which two pictures differ: what was received along the path, or what it was resolved to. */
function differ(one, other) {
  const texts = [one, other].map(svg => new Map(!svg ? [] : [...svg.querySelectorAll("text.io[data-ref]")]
    .map(text => [text.dataset.ref.split("/")[1], text.textContent])));
  const paths = texts[1].size ? [...texts[0].keys()].filter(path => texts[0].get(path) !== texts[1].get(path)) : [];
  for (const svg of [one, other]) {
    for (const mark of svg?.querySelectorAll(".node[data-ref]") ?? []) {
      mark.classList.toggle("differs", paths.includes(mark.dataset.ref.split("/")[1]));
    }
  }
  if (paths.join() !== differing.peek().join()) differing.value = paths;
}

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
  const other = use(beside);
  const shown = useRef(null), shownOther = useRef(null);
  const process = answer?.processes.find(p => p.name === of);
  const decided = process?.decided && process.decided <= at;

  const place = event => {
    for (const [tree, name] of [[shown.current, of], [shownOther.current, other]]) {
      const ends = answer.processes.find(p => p.name === name)?.decided || answer.report.events;
      tree?.show(folded.peek() ?? (event >= ends ? Infinity : 0));
    }
  };
  const prepare = (tree, name) => svg => {
    pictures.set(name, svg);
    differ(pictures.get(of), pictures.get(other));
    tree.current = outputs(svg);
    return place;
  };
  useEffect(() => {
    if (!other) shownOther.current = null;
    differ(pictures.get(of), pictures.get(other));
  }, [of, other]);
  useEffect(() => { place(cursor.peek()); }, [step]);
  useEffect(() => { folded.value = null; }, [at, of]);
  useEffect(() => { // a selected node is in the tree that is shown
    const parts = parse(selected);
    const name = parts.kind === "node" ? named(parts.of) : parts.kind === "process" && named(selected);
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
      <button aria-pressed=${name === of} onClick=${() => {
        owner.value = name === answer.owner ? "" : name;
        if (name === other) beside.value = "";
      }}>${name}</button>`)}</div>
    <label class="beside">beside <select value=${other} onChange=${e => { beside.value = e.target.value; }}>
      <option value="">none</option>${answer.owners.filter(name => name !== of).map(name => html`
        <option selected=${name === other}>${name}</option>`)}</select></label>
    <button disabled=${!decided} title=${decided ? "Show the votes rank by rank" : `${of} has not decided yet`}
      onClick=${() => { folded.value = 0; }}>Fold up</button>`;
  const foot = html`<${RootVote} of=${process?.ref} shown=${Boolean(decided) && step === null}/>`;
  return html`
    <${Picture} key=${"tree-" + of} name="tree" of=${of} tools=${tools} prepare=${prepare(shown, of)} foot=${foot}/>
    ${other && html`<${Picture} key=${"tree-" + other} name="tree" of=${other} prepare=${prepare(shownOther, other)}
      foot=${html`<${Differences} of=${of} other=${other}/>`}/>`}`;
}

/** In which nodes two trees differ, in words. */
function Differences({of, other}) {
  const paths = use(differing);
  const {answer} = use(run);
  const ref = answer.processes.find(p => p.name === of)?.ref;
  if (!paths.length) return html`<p class="legend">The trees of ${of} and ${other} have the same values at all nodes.</p>`;
  return html`<p class="legend">The trees of ${of} and ${other} differ at ${count(paths.length, "node")}:
    ${paths.slice(0, 12).map(path => html` <button class="plain" onClick=${() => select(`${ref}/${path}`)}>${path}</button>`)}
    ${paths.length > 12 && " …"}</p>`;
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
