// The page: a header, one view, and what every view has: the keys, the notices, and dropped files.

import {capital, html, render, use, useEffect, useRef, useState} from "./lib.js";
import {form, trouble} from "./engine.js";
import {about, begin, cursor, events, here, needsFile, notice, place, run, title, view} from "./store.js";
import "./files.js";
import {helping, list} from "./keys.js";
import {isDark, theme, toggle} from "./theme.js";
import {whereabouts} from "./parts/transport.js";
import {Copy, Export, shortLink} from "./parts/export.js";
import {Icon} from "./parts/icon.js";
import {Gallery} from "./views/gallery.js";
import {Run} from "./views/run.js";
import {Guide} from "./views/guide.js";
import {About} from "./views/about.js";
import {Traitor} from "./views/traitor.js";
import {Explore} from "./views/explore.js";
import {Cost} from "./views/cost.js";
import {Live} from "./views/live.js";
import {Compare} from "./views/compare.js";
import {Walk} from "./views/walk.js";

/** The views, in the order of the navigation. A view that does not work yet is not among them. */
const views = [
  {name: "gallery", title: "Gallery", view: Gallery}, {name: "run", title: "Run", view: Run},
  {name: "traitor", title: "Be the traitor", view: Traitor}, {name: "explore", title: "Explore", view: Explore},
  {name: "cost", title: "Cost", view: Cost},
  ...form === "server" ? [{name: "live", title: "Live", view: Live}] : [],
  {name: "guide", title: "Guide", view: Guide}, {name: "about", title: "About", view: About},
  // Views that a view of the navigation leads to.
  {name: "walk", title: "Walk", view: Walk, within: "explore"}, {name: "compare", title: "Compare", view: Compare, within: "run"},
];

function Header({current}) {
  use(theme);
  const shown = use(run), where = use(place), file = use(needsFile);
  const onRun = current === "run" && shown.answer;
  const within = views.find(v => v.name === current)?.within;
  return html`
    <header class="top">
      <a class="brand" href="#/gallery"><img src="icon.svg" alt="" width="26" height="26"/><b>Parley</b> <span>lab</span></a>
      <nav aria-label="Main">${views.filter(v => !v.within).map(v => html`
        <a href=${"#/" + v.name} aria-current=${v.name === current ? "page" : v.name === within ? "true" : null}
          onClick=${e => { if (v.name === "run" && where) back(e); }}>${v.title}</a>`)}</nav>
      <div class="top-tools">${onRun && html`
          <${Copy} text=${shortLink} label=${file ? "Copy link (needs the file)" : "Copy link"} done="Link copied"
            title=${file && "The link says which run it is. Only the trace file has the run: send the file, too."}/><${Export}/>`}
        <button class="tool keys-button" aria-label="Keys" title="Keys (?)" onClick=${() => { helping.value = true; }}>?</button>
        <button class="tool" aria-label=${isDark() ? "Light" : "Dark"} title=${isDark() ? "Light" : "Dark"} onClick=${toggle}>
          <${Icon} name=${isDark() ? "sun" : "moon"}/></button></div>
    </header>`;
}

/** Returns to the run that was left. */
async function back(event) {
  event.preventDefault();
  location.hash = await here();
}

function Keys() {
  const shown = use(helping);
  const dialog = useRef(null);
  useEffect(() => {
    if (shown) dialog.current.showModal();
    else dialog.current.close();
  }, [shown]);
  return html`
    <dialog ref=${dialog} class="card" aria-labelledby="keys" onClose=${() => { helping.value = false; }}
      onClick=${e => e.target === dialog.current && dialog.current.close()}>
      <div class="card-head"><h2 id="keys">Keys</h2>
        <button class="tool" aria-label="Close" onClick=${() => dialog.current.close()}><${Icon} name="close"/></button></div>
      <dl class="keys">${list.map(([keys, says]) => html`
        <dt>${keys.split(" ").map(k => html`<kbd>${k}</kbd> `)}</dt><dd>${says}</dd>`)}</dl>
      <p class="mute">Press an arrow, a cell, a node or an event: all views show the same thing. Press twice on an arrow to
        go to the event that sends it. Drop a scenario or a trace on the page to open it.</p>
    </dialog>`;
}

/** Where the cursor is, for readers who hear the page. It is said when the cursor rests. */
function Spoken() {
  const at = use(cursor), end = use(events), current = use(view);
  const [said, say] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => say(current === "run" && end ? whereabouts(at, end) : ""), 700);
    return () => clearTimeout(timer);
  }, [at, end, current]);
  return html`<p class="visually-hidden" aria-live="polite">${said}</p>`;
}

/** A notice with a button to close it. */
function Notices() {
  const wrong = use(trouble), says = use(notice);
  return html`
    ${wrong && html`<p class="notice trouble" role="status">${wrong}</p>`}
    ${says && html`<p class="notice" role="status"><span>${says}</span>
      <button class="tool" aria-label="Close" onClick=${() => { notice.value = ""; }}><${Icon} name="close"/></button></p>`}`;
}

// Where the gallery was scrolled to, so that the way back leads to the same card.
let galleryAt = 0;
addEventListener("scroll", () => {
  if (view.peek() === "gallery" && document.querySelector(".shots")) galleryAt = scrollY;
}, {passive: true});

function App() {
  const current = use(view), known = use(about);
  const shown = views.find(v => v.name === current) ?? views[0];
  const heading = use(title);
  const main = useRef(null), before = useRef("");
  useEffect(() => {
    document.title = `${current === "run" ? capital(heading) : shown.title} · Parley lab`;
  }, [current, heading]);
  useEffect(() => {
    scrollTo(0, current === "gallery" ? galleryAt : 0);
    if (before.current) main.current.focus({preventScroll: true}); // who hears the page hears that it is another one
    before.current = current;
  }, [current]);
  return html`
    <a class="skip" href="#main" onClick=${e => { e.preventDefault(); main.current.focus(); }}>To the content</a>
    <${Header} current=${current}/>
    <${Notices}/>
    <main id="main" ref=${main} tabindex="-1">${known ? html`<${shown.view}/>` : html`<p class="boot">The engine is starting …</p>`}</main>
    <${Keys}/><${Spoken}/>`;
}

document.addEventListener("click", event => { // a menu closes when something else is pressed
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});

const root = document.getElementById("app");
root.replaceChildren();
render(html`<${App}/>`, root);
begin().catch(err => { notice.value = err.message; });
