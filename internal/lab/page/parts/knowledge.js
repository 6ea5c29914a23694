// What a process knows: what it has seen, and which other runs look the same to it.

import {capital, count, html, number, use, useState} from "../lib.js";
import {arguing, knowledge} from "../knowing.js";
import {write} from "../link.js";
import {linkTo as exploreLink} from "../searching.js";
import {cursor, observer, place, run} from "../store.js";
import {CompareLink} from "./against.js";

const few = 6;

/** Another run that looks the same. */
function Run({other, name}) {
  const here = use(place);
  const there = {...here, flags: {...here.flags, ...other.flags}};
  const decided = other.decides.filter(d => d.decides);
  const open = async () => { location.hash = await write({view: "run", place: there}); };
  return html`
    <li><p><b>${capital(other.says.join(", and "))}.</b>
        ${decided.length > 0 && ` ${decided.map(d => `${d.name} decides ${d.decides}`).join(", ")}.`}
        ${other.broken.length > 0 && html` <span class="breach">${capital(other.broken.join(", "))}
          ${other.broken.length > 1 ? " break" : " breaks"}.</span>`}
        ${other.until > 0 && html` <span class="mute">${name} sees a difference at event ${number(other.until)}.</span>`}</p>
      <p class="row-of-buttons"><button onClick=${open}>Open</button>
        <${CompareLink} a=${here} b=${there}>Compare<//></p></li>`;
}

/** The other runs in numbers. */
function Tried({answer}) {
  const {tried, left, other} = answer;
  return html`<p class="why">The lab tried ${count(tried, "run")} with other lies, other faulty processes, other values, and
    other seeds. Of these, ${number(other)} ${other === 1 ? "differs" : "differ"} from this run.
    ${left > 0 && ` It did not try ${number(left)} more of that kind.`} ${answer.of} may be unable to tell this run from others,
    which were not tried.</p>`;
}

function Known({answer}) {
  const at = use(cursor), argued = use(arguing), beyond = !use(run).answer.promised;
  const [all, more] = useState(false);
  const {of, seen, why, same, other, runs, open, model} = answer;
  if (why) return html`<p>${of} has seen ${count(seen, "event")}.</p><p class="mute">${why}</p>`;
  return html`
    <p>After event ${number(at)}, ${of} has seen ${count(seen, "event")} of its own, and nothing else.</p>
    ${open.length > 0 && html`<h3>${of} cannot tell</h3><ul class="open-questions">${open.map(q => html`<li>${q}</li>`)}</ul>`}
    <h3>${number(same)} of ${count(other, "other run")} look the same to ${of} so far</h3>
    <ol class="alike">${(all ? runs : runs.slice(0, few)).map(r => html`
      <${Run} key=${JSON.stringify(r.flags)} other=${r} name=${of}/>`)}</ol>
    ${runs.length > few && !all && html`<p><button class="plain" onClick=${() => more(true)}>Show ${runs.length} of them</button></p>`}
    <${Tried} answer=${answer}/>
    ${model && html`<p class="why">The explorer tries all lies, not only those that have a name.
        ${" "}<a href=${exploreLink(model)}>Explore this system</a></p>
      ${beyond && html`<p class="row-of-buttons"><button aria-pressed=${argued}
        onClick=${() => { arguing.value = !argued; }}>The argument with all lies</button></p>`}`}`;
}

export function Knowledge() {
  const {answer: made} = use(run), of = use(observer), {answer, error} = use(knowledge);
  const correct = made.processes.filter(p => !p.behavior);
  const choose = name => { observer.value = name === of ? "" : name; };
  return html`
    <section class="card knowledge" aria-labelledby="knowledge">
      <div class="card-head"><h2 id="knowledge">${of ? `What ${of} sees` : "What a process sees"}</h2>
        <div class="segments" role="group" aria-label="Who sees">${correct.map(p => html`
          <button aria-pressed=${p.name === of} onClick=${() => choose(p.name)}>${p.name}</button>`)}</div></div>
      ${!of ? html`<p class="mute">Choose a process: everything that it does not see becomes faint, and you learn which other runs
          look the same to it.</p>`
        : error ? html`<p class="wrong">${capital(error.message)}</p>`
        : answer ? html`<${Known} answer=${answer}/>` : html`<p class="mute" role="status">Trying other runs …</p>`}
    </section>`;
}
