// The guide: the lessons in order, each with the runs that it explains.

import {capital, html, use} from "../lib.js";
import {about} from "../store.js";

export function Guide() {
  const {gallery, lessons} = use(about);
  return html`
    <div class="title"><div><h1>Guide</h1>
      <p class="mute">${lessons.length} lessons, from one crash to a replicated service. Predict how a run ends before you open it;
        then move through it and look for the reason.</p></div></div>
    <ol class="lessons">${lessons.map(lesson => html`
      <li class="card"><h2><span class="number">${lesson.number}</span> ${lesson.title}</h2>
        <p>${capital(lesson.question)}</p>
        <ul>${gallery.filter(c => c.lesson === lesson.number).map(c => html`
          <li><a href=${`#/run?g=${c.name}&lab=1`}>${capital(c.shows)}</a></li>`)}</ul></li>`)}</ol>`;
}
