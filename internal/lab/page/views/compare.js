// Two runs side by side: in words where they differ, and then any view of both.

import {capital, classes, html, use, useEffect} from "../lib.js";
import {whole} from "../address.js";
import {difference, joined, pair, panes, show} from "../comparing.js";
import {write} from "../link.js";
import {Showing} from "../shown.js";
import {card} from "../store.js";
import {Against} from "../parts/against.js";
import {Differences} from "../parts/differences.js";
import {Copy} from "../parts/export.js";
import {Picture, titles} from "../parts/picture.js";
import {State} from "../parts/state.js";
import {Steps} from "../parts/steps.js";
import {Story} from "../parts/story.js";
import {Tables} from "../parts/tables.js";

const sides = ["First run", "Second run"];

/** What a run is, in a line. What the gallery says of a scenario may be false after a change. */
const called = (place, report) => capital(Object.keys(place.flags).length ? report.title : card(place.g)?.shows ?? report.title);

/** What can be shown of both runs. */
function choices(answers) {
  const pictures = answers[0].pictures.filter(name => answers[1].pictures.includes(name));
  const tables = answers.every(a => a.rounds.length) ? [["messages", "Tables"]] : [];
  return [...pictures.map(name => [name, titles[name] ?? capital(name)]), ...tables, ["story", "Story"], ["state", "State"]];
}

/** One view of one run. */
function Side({i, place, shown, mark}) {
  const pane = panes[i];
  const {answer} = use(pane.run);
  const {report, processes} = answer;
  const faulty = processes.filter(p => p.faulty).map(p => p.name + (p.behavior && ` ${p.behavior}`));
  const open = async () => { location.hash = await write({view: "run", place, at: pane.cursor.peek(), hash: report.trace_hash}); };
  const body = {
    story: () => html`<${Story}/>`, state: () => html`<${State}/>`, messages: () => html`<${Tables}/>`,
  }[shown] ?? (() => html`<${Picture} key=${shown} name=${shown}/>`);
  return html`
    <section class="side" aria-label=${sides[i]}>
      <div class="side-head"><h2><span class="tag">${sides[i]}</span> ${called(place, report)}</h2>
        <p class="mute">${report.protocol}, n = ${report.n}, m = ${report.m}${faulty.length > 0 &&
          ` · ✗ ${faulty.join(", ")}`} · seed ${report.seed}${place.g && Object.keys(place.flags).length > 0 && " · changed"}</p>
        <button onClick=${open}>Open</button></div>
      <${Showing} value=${pane}><${Steps} label=${sides[i].toLowerCase()} mark=${mark}/>${body()}<//>
    </section>`;
}

/** The arrow keys move both cursors, or that of the first run. */
function keys(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, select, textarea, dialog, [role=gridcell]")) return;
  const end = panes[0].events.peek(), at = panes[0].cursor.peek();
  const to = {ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: end}[event.key];
  if (to === undefined) return;
  event.preventDefault();
  panes[0].moveTo(to);
}

export function Compare() {
  const now = use(pair), {answer, error} = use(difference), together = use(joined);
  const made = panes.map(p => use(p.run).answer);
  const chosen = use(show);
  useEffect(() => {
    addEventListener("keydown", keys);
    return () => removeEventListener("keydown", keys);
  }, []);
  const head = html`
    <div class="title far"><div><h1>Compare two runs</h1>
      <p class="mute">Where they part, and to which processes they look the same.</p></div>
      <${Copy} text=${whole} label="Copy link" done="Link copied"/></div>`;
  if (error) return html`${head}<p class="notice trouble" role="alert">${capital(error.message)}</p>`;
  if (now && !now.b && made[0]) {
    return html`${head}<section class="card" aria-labelledby="with"><div class="card-head">
      <h2 id="with">Compare “${called(now.a, made[0].report)}” with …</h2></div><${Against} place=${now.a} answer=${made[0]}/></section>`;
  }
  if (!answer || !made[0] || !made[1]) return html`${head}<p class="boot">The runs are being compared …</p>`;
  const list = choices(made);
  const shown = list.some(([name]) => name === chosen) ? chosen : list[0][0];
  return html`${head}
    <${Differences}/>
    <div class="compare-tools">
      <div class="segments" role="group" aria-label="What both show">${list.map(([name, title]) => html`
        <button aria-pressed=${name === shown} onClick=${() => { show.value = name; }}>${title}</button>`)}</div>
      <label class="check"><input type="checkbox" checked=${together} onChange=${e => { joined.value = e.target.checked; }}/>
        one cursor for both</label></div>
    <div class=${classes({compare: true})}>${[now.a, now.b].map((place, i) => html`
      <${Side} key=${i} i=${i} place=${place} shown=${shown} mark=${answer.first[i]?.event}/>`)}</div>`;
}
