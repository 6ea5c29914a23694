// What the lab is, which protocols it has, and how it answers.

import {capital, html, use} from "../lib.js";
import {form} from "../engine.js";
import {about} from "../store.js";
import {Pan} from "../parts/pan.js";

export function About() {
  const {version, protocols} = use(about);
  return html`
    <div class="title"><div><h1>About the lab</h1><p class="mute">Parley ${version}</p></div></div>
    <div class="about">
      <section class="card"><h2>What you see</h2>
        <p>Every run here is made by the same protocol code that real clusters run. A simulator draws all delays and
          choices from a seed, so the same setting makes the same run on every computer. Equal runs have equal trace hashes.</p>
        <p>${form === "wasm" ? "The engine runs in this browser, compiled to WebAssembly. Nothing that you do here leaves your computer."
          : "The engine is the program that serves this page. It simulates; it touches no cluster."}</p>
        <p>A link holds the whole run: the protocol, its setting, the place of the cursor and what is selected. Everything
          that the lab shows, the command <code>parley run</code> prints too; each run says with which command.</p></section>
      <section class="card"><h2>How to read it</h2>
        <ul><li><b>A value</b> has a color and a sign. <b>Dashed red</b> is a lie that the trace
          shows, or the line of a faulty process (✗).</li>
          <li><b>Faint</b> is still to come: the cursor has not passed it.</li>
          <li><b>A verdict</b> is held or broken, promised or not. VIOLATED would mean that Parley itself is wrong.</li>
          <li><b>Beyond the bound</b> the theorem promises nothing, and the lab runs it all the same.</li></ul></section>
      <section class="card wide"><h2>Protocols</h2>
        <${Pan} label="Protocols"><table class="list"><thead><tr><th scope="col">name</th><th scope="col">what it does</th>
          <th scope="col">time</th><th scope="col">tolerates</th><th scope="col">source</th></tr></thead>
          <tbody>${protocols.map(p => html`<tr><th scope="row"><a href=${`#/run?s=${p.name}&lab=1`}>${p.name}</a></th>
            <td>${capital(p.title)}</td><td>${p.timing}</td><td>${p.faults}</td><td class="mute">${p.source}</td></tr>`)}
          </tbody></table><//></section>
    </div>`;
}
