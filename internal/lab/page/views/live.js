// A cluster of real nodes while it runs: its last seconds as a picture, its nodes and links, and what can be done to it.

import {capital, count, html, use, useEffect, useLayoutEffect, useRef, useState} from "../lib.js";
import {act, answer, asked, lost, said, state, unwatch, watch} from "../live.js";
import {Ruling} from "../parts/ruling.js";
import {Links} from "../parts/links.js";
import {Nodes} from "../parts/nodes.js";
import {parsed} from "../parts/picture.js";

/** Returns a text with a capital letter first, unless it begins with the name of a node. */
const sentence = text => state.peek()?.nodes.some(n => text.startsWith(n.name)) ? text : capital(text);

/** The form that starts a cluster. */
function Start({levels, failure}) {
  const [n, setN] = useState(3);
  const [level, setLevel] = useState(levels[0]);
  const [busy, setBusy] = useState(false);
  const start = async () => {
    setBusy(true);
    await act({do: "start", n, level});
    setBusy(false);
  };
  return html`
    <section class="card live-start" aria-labelledby="start">
      <div class="card-head"><h2 id="start">Start a cluster on this computer</h2></div>
      <p>Each node is a process of its own, with a certificate and a disk folder. You can then kill and pause nodes, cut links,
        and watch what the others do. The cluster ends with the lab, or when you press Stop, and nothing of it remains.</p>
      <div class="live-form">
        <div><span class="label" id="count">Nodes</span><div class="segments" role="group" aria-labelledby="count">
          ${[3, 4, 5, 6, 7].map(k => html`<button aria-pressed=${k === n} onClick=${() => setN(k)}>${k}</button>`)}</div></div>
        <div><label class="label" for="level">Level of the group</label>
          <select id="level" value=${level} onChange=${e => setLevel(e.target.value)}>${levels.map(l => html`
            <option value=${l} selected=${l === level}>${l}</option>`)}</select></div>
        <button class="primary" disabled=${busy} onClick=${start}>Start</button></div>
      ${failure && html`<p class="wrong">${capital(failure)}</p>`}
    </section>`;
}

/** The picture of the last seconds. It is as wide as its box. While it is held, it stays as it is. */
function Lanes({shown, machine, choose}) {
  const box = useRef(null);
  const [held, hold] = useState("");
  const width = useRef(0);
  useLayoutEffect(() => {
    let timer = 0;
    const look = () => {
      const now = Math.max(280, Math.floor(box.current.clientWidth));
      if (Math.abs(now - width.current) < 4) return;
      width.current = now;
      watch(now, machine);
    };
    const sizes = new ResizeObserver(() => {
      clearTimeout(timer);
      timer = setTimeout(look, width.current ? 200 : 0);
    });
    sizes.observe(box.current);
    return () => {
      clearTimeout(timer);
      sizes.disconnect();
    };
  }, [machine]);
  const svg = held || shown.picture;
  useLayoutEffect(() => {
    const drawn = svg && parsed(svg);
    box.current.replaceChildren(...drawn ? [drawn] : []);
    if (!drawn) return;
    const states = shown.nodes.map(n => `${n.name}: ${n.state}`).join(", ");
    drawn.setAttribute("aria-label", "The last seconds of the cluster. " + states);
    drawn.querySelector(":scope > title")?.remove(); // it would pop up everywhere
  }, [svg]);
  const pick = e => {
    choose(e.target.value);
    watch(width.current, e.target.value);
  };
  return html`
    <section class="card live-lanes" aria-labelledby="lanes">
      <div class="card-head"><h2 id="lanes">The last seconds</h2>
        ${shown.machines.length > 1 && html`<label class="mute">of <select value=${shown.machine} onChange=${pick}>
          ${shown.machines.map(m => html`
            <option value=${m.name} selected=${m.name === shown.machine}>${m.title}</option>`)}</select></label>`}
        <button aria-pressed=${held ? "true" : "false"}
          onClick=${() => hold(held ? "" : shown.picture)}>Hold</button></div>
      <div class="live-picture" ref=${box}></div>
      ${shown.missing && html`<p class="wrong">${shown.missing}</p>`}
    </section>`;
}

/** Something to do with the cluster. */
function Try({shown}) {
  const [text, setText] = useState("hello");
  const names = shown.nodes.map(n => n.name);
  const [at, setAt] = useState(names[0]);
  const node = names.includes(at) ? at : names[0];
  const came = use(said);
  return html`
    <section class="card" aria-labelledby="try">
      <div class="card-head"><h2 id="try">Let the nodes do something</h2></div>
      <form class="live-form" onSubmit=${e => { e.preventDefault(); act({do: "broadcast", node, text}); }}>
        <div><label class="label" for="at">At</label>
          <select id="at" value=${node} onChange=${e => setAt(e.target.value)}>${names.map(n => html`
            <option value=${n} selected=${n === node}>${n}</option>`)}</select></div>
        <div class="grows"><label class="label" for="text">Text</label>
          <input id="text" value=${text} maxlength="200" onInput=${e => setText(e.target.value)}/></div>
        <button type="submit" disabled=${!text}>Broadcast</button>
        <button type="button" disabled=${!text} onClick=${() => act({do: "agree", node, text})}>Agree</button></form>
      <label class="check"><input type="checkbox" checked=${shown.traffic}
        onChange=${e => act({do: "traffic", on: e.target.checked})}/> Broadcast a text every second
        ${shown.sent > 0 && html` <span class="mute">(${shown.sent} so far)</span>`}</label>
      <p class=${came.wrong ? "wrong live-said" : "live-said"} role="status">${sentence(came.text)}</p>
    </section>`;
}

function Happened({lines}) {
  return html`
    <section class="card" aria-labelledby="happened">
      <div class="card-head"><h2 id="happened">What happened</h2></div>
      ${lines.length ? html`<ol class="live-lines" reversed aria-live="polite" aria-relevant="additions">${lines.toReversed().map(l => html`
        <li key=${l.number}><span class="mute">${l.at}</span> ${l.text}</li>`)}</ol>` : html`<p class="mute">Nothing yet.</p>`}
    </section>`;
}

/** Asks once whether the reader means to stop something. */
function Sure() {
  const waiting = use(asked);
  const dialog = useRef(null);
  useLayoutEffect(() => {
    if (waiting) dialog.current.showModal();
    else dialog.current.close();
  }, [waiting]);
  // The browser says late that the dialog was closed. Then the dialog may already ask another question.
  return html`
    <dialog ref=${dialog} class="card" aria-labelledby="sure" onClose=${e => { if (!e.target.open) answer(false); }}>
      <h2 id="sure">${waiting?.question}</h2>
      <p>The lab can only do this to the cluster that it started itself. It does not ask again.</p>
      <div class="row-of-buttons main-buttons"><button class="primary" onClick=${() => answer(true)}>Do it</button>
        <button onClick=${() => answer(false)}>Cancel</button></div>
    </dialog>`;
}

export function Live() {
  const shown = use(state), gone = use(lost), came = use(said);
  const [machine, choose] = useState("");
  const running = shown?.running;
  useEffect(() => {
    watch(0, "");
    return unwatch;
  }, []);
  return html`
    <div class="title far"><div><h1>Live</h1>
      <p class="mute">${!running ? "Real nodes, which you can kill, pause, and cut off from each other."
        : shown.own ? `${count(shown.nodes.length, "node")} on this computer, with a group of level ${shown.level}, for ${shown.for}.`
        : `A cluster that was started elsewhere: ${count(shown.nodes.length, "node")}. The lab only shows it.`}</p></div>
      ${running && shown.own && html`<button onClick=${() => act({do: "stop"})}>Stop</button>`}</div>
    ${gone && html`<p class="notice trouble" role="status">${gone}</p>`}
    ${!shown ? html`<p class="boot">The program is asked for its cluster …</p>`
      : !running ? html`<${Start} levels=${shown.levels} failure=${came.wrong ? came.text : shown.failure}/>`
      : html`<div class="live">
          <${Lanes} shown=${shown} machine=${machine} choose=${choose}/>
          <${Ruling} ruling=${shown.ruling}/>
          <${Nodes} state=${shown}/>
          <div class="live-beside"><${Links} state=${shown}/>
            ${shown.own && html`<${Try} shown=${shown}/><${Happened} lines=${shown.lines}/>`}</div>
        </div>`}
    ${shown?.own && html`<${Sure}/>`}`;
}
