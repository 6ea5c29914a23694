// Which run to compare a run with.

import {html, use, useEffect, useState} from "../lib.js";
import {before, linkTo} from "../comparing.js";
import {about, card} from "../store.js";

/** A link to the comparison of two runs. @param {{a: object, b: object, class?: string, children?: any}} props */
export function CompareLink({a, b, class: name = "button", children}) {
  const [to, lead] = useState("");
  useEffect(() => {
    let current = true;
    linkTo(a, b).then(link => current && lead(link));
    return () => { current = false; };
  }, [JSON.stringify([a, b])]);
  return html`<a class=${name} href=${to}>${children}</a>`;
}

/** The runs that are near to a run, each with what it is. */
function near(place, answer) {
  if (place.t) return [];
  const other = flags => ({...place, flags: {...place.flags, ...flags}});
  const list = [["another seed", other({seed: String(answer.report.seed + 1)})]];
  if (answer.processes.some(p => p.behavior)) list.push(["the same without lies", other({faulty: "none"})]);
  return list;
}

/** What a place is, in a few words. */
const called = place => (place.g ? card(place.g)?.shows ?? place.g : place.s ?? (place.t ? "a trace" : "a scenario file")) +
  (place.g && Object.keys(place.flags).length ? ", changed" : "");

/** @param {{place: any, answer: any}} props the run to compare */
export function Against({place, answer}) {
  const last = use(before);
  const choices = near(place, answer);
  if (last && JSON.stringify(last) !== JSON.stringify(place)) choices.push([`the run before: ${called(last)}`, last]);
  const scenario = async event => { location.hash = await linkTo(place, {g: event.target.value, flags: {}}); };
  return html`
    <div class="against">${choices.map(([says, b]) => html`<${CompareLink} a=${place} b=${b} class="choice-link">${says}<//>`)}
      <label><span>another scenario</span>
        <select aria-label="Another scenario" onChange=${scenario}><option value="">choose …</option>${about.peek().gallery.map(c => html`
          <option value=${c.name}>${c.shows}</option>`)}</select></label></div>`;
}

/** Opens the menu to the left if there is no room at the right. */
function fit({currentTarget: menu}) {
  menu.classList.remove("leftward");
  menu.classList.toggle("leftward", menu.querySelector(".menu-body").getBoundingClientRect().right > innerWidth);
}

/** A menu with these runs. */
export function AgainstMenu({place, answer}) {
  return html`
    <details class="menu compare-menu" onToggle=${fit}><summary class="button">Compare with …</summary>
      <div class="menu-body"><${Against} place=${place} answer=${answer}/></div></details>`;
}
