// The gallery: every scenario with a small picture, grouped by the lesson that explains it.

import {signal} from "../vendor/signals.js";
import {capital, html, remembered, use, useEffect, useRef} from "../lib.js";
import {openFiles} from "../files.js";
import {about, settingOf} from "../store.js";
import {parsed} from "../parts/picture.js";

const search = signal(""), breaks = signal(false), lies = signal(false);

/** A text as it is searched: without the marks that people write or leave out, as in two-phase or n = 3. */
const plain = text => text.toLowerCase().replace(/\b([a-z]+)\s*[:=]\s*(?=\d)/g, "$1=").replace(/[-‐]/g, "");

/** The numbers of processes in a scenario, as n = 3. */
const sizes = text => (text.match(/^[nm]: *\d+/gm) ?? []).join(" ");

/** A small picture of a scenario, drawn when it comes into view, one after the other. */
function Thumbnail({name}) {
  const box = useRef(null);
  useEffect(() => {
    const stop = new AbortController();
    const watch = new IntersectionObserver(seen => {
      if (!seen.some(s => s.isIntersecting)) return;
      watch.disconnect();
      queue = queue.then(() => stop.signal.aborted ? null : draw(box.current, name, stop.signal)).catch(() => {});
    }, {rootMargin: "200px"});
    watch.observe(box.current);
    return () => {
      stop.abort();
      watch.disconnect();
    };
  }, []);
  return html`<div class="thumb" ref=${box} aria-hidden="true"></div>`;
}

let queue = Promise.resolve();

async function draw(box, g, signal) {
  const run = settingOf({g, flags: {}}); // the questions are those of the view Run
  const ask = question => remembered(JSON.stringify(question), signal);
  const [name] = (await ask({ask: "run", run})).pictures;
  const {svg: source} = await ask({ask: "picture", run, name});
  const svg = parsed(source);
  if (!svg || signal.aborted) return;
  // Ids and titles belong to the large picture; heads of arrows need their ids.
  for (const title of svg.querySelectorAll("title, text.head[x='0'], text.tree-title")) title.remove();
  for (const marked of svg.querySelectorAll("[id]")) {
    if (marked.tagName !== "marker" && marked.tagName !== "pattern") marked.removeAttribute("id");
  }
  svg.removeAttribute("id");
  svg.removeAttribute("role");
  box.replaceChildren(svg);
  const {x, y, width, height} = svg.getBBox();
  svg.setAttribute("viewBox", `${x - 8} ${y - 8} ${width + 16} ${Math.min(height + 16, width * 0.6)}`);
  svg.setAttribute("preserveAspectRatio", "xMidYMid meet");
  svg.removeAttribute("width");
  svg.removeAttribute("height");
}

function Card({card}) {
  return html`
    <li class="card shot"><a href=${`#/run?g=${card.name}&lab=1`}>
      <${Thumbnail} name=${card.name}/>
      <h3>${capital(card.shows)}</h3>
      <p class="tags"><span class="tag">${card.protocol}</span>
        ${card.breaks.length > 0 && html`<span class="tag broken">✗ breaks ${card.breaks.join(", ")}</span>`}
        ${card.faulty && html`<span class="tag liar">faulty processes</span>`}</p>
      <p class="words">${card.words}</p></a></li>`;
}

export function Gallery() {
  const {gallery, lessons} = use(about);
  const text = use(search).toLowerCase().trim();
  const onlyBreaks = use(breaks), onlyLies = use(lies);
  const words = plain(text).split(/\s+/);
  const shown = gallery.filter(c => (!onlyBreaks || c.breaks.length > 0) && (!onlyLies || c.faulty) &&
    words.every(word => plain(`${c.name} ${c.protocol} ${c.shows} ${c.words} ${c.slide} ${sizes(c.text)}`).includes(word)));
  const groups = [...new Set(gallery.map(c => c.lesson))]
    .map(lesson => ({lesson, cards: shown.filter(c => c.lesson === lesson)})).filter(g => g.cards.length > 0);
  const switchOf = (state, label) => html`
    <label class="check"><input type="checkbox" checked=${state.peek()}
      onChange=${e => { state.value = e.target.checked; }}/> ${label}</label>`;
  return html`
    <div class="title"><div><h1>Processes that agree, although some of them fail</h1>
      <p class="mute">Open a run to step through its events, and to change its setting.</p></div></div>
    <form class="filters" role="search" onSubmit=${e => e.preventDefault()}>
      <input type="search" placeholder="Search: protocol, fault, lesson …" aria-label="Search the gallery" value=${search.peek()}
        onInput=${e => { search.value = e.target.value; }}/>
      ${switchOf(breaks, "breaks a promise")} ${switchOf(lies, "has faulty processes")}
      <label class="button file">Open files …<input type="file" multiple class="visually-hidden" accept=".yaml,.yml,.jsonl,.json"
        onChange=${e => openFiles(e.target.files)}/></label>
      <output class="mute">${shown.length} of ${gallery.length} runs</output></form>
    ${groups.map(({lesson, cards}) => {
      const about = lessons?.find(l => l.number === lesson);
      return html`
      <section class="lesson" aria-labelledby=${"lesson-" + lesson}>
        <h2 id=${"lesson-" + lesson}>${lesson} ${about?.title}${about && html` <span class="mute">${about.question}</span>`}</h2>
        <ul class="shots">${cards.map(c => html`<${Card} key=${c.name} card=${c}/>`)}</ul></section>`;
    })}
    ${groups.length === 0 && html`<p class="mute nothing">No run of the gallery fits. ${(onlyBreaks || onlyLies || text) && html`<button
      onClick=${() => { search.value = ""; breaks.value = lies.value = false; }}>Show all</button>`}</p>`}`;
}
