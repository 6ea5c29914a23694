// The guide: the lessons in order. Each step asks a question, opens the runs that answer it, and then explains them.

import {capital, html, use, useAnswer} from "../lib.js";
import {about} from "../store.js";

/** A text with its marks. */
const Text = ({spans}) => spans.map(({text, kind}) => kind ? html`<${kind}>${text}<//>` : text);

/** A step of a lesson. What there is to see stays folded until the reader has predicted it. */
function Step({step, first}) {
  return html`
    <li>${first && html`<h3>${step.title}</h3>`}
      <p><b>Predict.</b> <${Text} spans=${step.predict}/></p>
      <p class="ways">${step.runs.map((way, i) => html`
        <a class="button" href=${way.to} title=${way.command}>${way.search ? "Open the search" : "Open the run"}${
          step.runs.length > 1 && " " + (i + 1)}</a> `)}</p>
      <details class="fold"><summary>What you see, and why</summary>
        ${step.see.length > 0 && html`<ul class="moments">${step.see.map(way => html`
          <li><a href=${way.to}>${capital(way.says)}</a></li>`)}</ul>`}
        <p><${Text} spans=${step.explain}/></p></details></li>`;
}

function Lesson({lesson, steps, cards}) {
  const linked = steps.flatMap(step => step.runs).map(way => way.to);
  const more = cards.filter(c => !linked.some(to => to.startsWith(`#/run?g=${c.name}&`)));
  return html`
    <section class="card" aria-labelledby=${"lesson-" + lesson.number}>
      <h2 id=${"lesson-" + lesson.number}><span class="number">${lesson.number}</span> ${lesson.title}</h2>
      <p class="mute">${capital(lesson.question)}</p>
      <ol class="steps">${steps.map((step, i) => html`
        <${Step} step=${step} first=${step.title !== steps[i - 1]?.title}/>`)}</ol>
      ${more.length > 0 && html`<p class="more"><b>More runs:</b> ${more.map((c, i) => html`${i > 0 && " · "}
        <a href=${`#/run?g=${c.name}&at=0&lab=1`}>${c.shows}</a>`)}</p>`}
    </section>`;
}

export function Guide() {
  const {gallery, lessons} = use(about);
  const {steps} = useAnswer({ask: "guide"}).answer ?? {steps: []};
  return html`
    <div class="title"><div><h1>Guide</h1>
      <p class="mute">${lessons.length} lessons, from one crash to a replicated service. Predict how a run ends before you open it;
        then move through it and look for the reason.</p></div></div>
    <div class="guide"><nav aria-label="Lessons" class="contents"><ol>${lessons.map(lesson => html`
      <li><a href=${"#lesson-" + lesson.number} onClick=${event => {
        event.preventDefault();
        document.getElementById("lesson-" + lesson.number).scrollIntoView();
      }}>${lesson.title}</a></li>`)}</ol></nav>
    <div class="lessons">${lessons.map(lesson => html`
      <${Lesson} key=${lesson.number} lesson=${lesson} steps=${steps.filter(step => step.lesson === lesson.number)}
        cards=${gallery.filter(c => c.lesson === lesson.number)}/>`)}</div></div>`;
}
