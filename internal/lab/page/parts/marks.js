// The marks of a picture, indexed by the events at which they begin and end, so that a step of the cursor changes only
// the marks of that step.

/** An entry of the index. @typedef {{event: number, mark: Element}} Entry */

export class Marks {
  /** @param {SVGSVGElement} svg */
  constructor(svg) {
    /** @type {Entry[]} */ this.begins = [];
    /** @type {Entry[]} */ this.ends = [];
    /** @type {Map<string, Element[]>} */ this.byRef = new Map();
    /** @type {Element[]} */ this.selected = [];
    this.begun = this.ended = 0; // how many entries are before the cursor
    for (const mark of svg.querySelectorAll("[data-ref], [data-since], [data-until]")) {
      const {ref, since, until} = mark.dataset;
      if (since) this.begins.push({event: Number(since), mark});
      if (until) this.ends.push({event: Number(until), mark});
      if (ref) this.byRef.set(ref, [...this.byRef.get(ref) ?? [], mark]);
    }
    this.begins.sort((a, b) => a.event - b.event);
    this.ends.sort((a, b) => a.event - b.event);
    for (const {mark} of this.begins) mark.classList.add("future");
    for (const {mark} of this.ends) mark.classList.add("open");
  }

  /** Shows the picture after a number of events. What is to come is future; what has not ended is open. */
  to(event) {
    const {begins, ends} = this;
    while (begins[this.begun]?.event <= event) begins[this.begun++].mark.classList.remove("future");
    while (begins[this.begun - 1]?.event > event) begins[--this.begun].mark.classList.add("future");
    while (ends[this.ended]?.event <= event) ends[this.ended++].mark.classList.remove("open");
    while (ends[this.ended - 1]?.event > event) ends[--this.ended].mark.classList.add("open");
  }

  /**
   * Makes the marks faint that do not pass a test; without one, none.
   * @param {((ref: string, since?: string) => boolean) | undefined} sees
   */
  see(sees) {
    for (const [ref, marks] of this.byRef) {
      for (const mark of marks) mark.classList.toggle("unseen", Boolean(sees) && !sees(ref, mark.dataset.since));
    }
  }

  /**
   * Shades the marks that are not in a set, except those of processes and of what is selected.
   * @param {Set<string> | null} cone
   */
  shade(cone) {
    for (const [ref, marks] of this.byRef) {
      const outside = Boolean(cone) && !cone.has(ref) && !/^P\d+$/.test(ref);
      for (const mark of marks) mark.classList.toggle("outside", outside && !mark.classList.contains("selected"));
    }
  }

  /**
   * Emphasizes the marks whose reference passes a test, and less those that are linked with them.
   * @param {(ref: string) => boolean} matches
   * @param {Set<string>} linked
   */
  select(matches, linked) {
    for (const mark of this.selected) mark.classList.remove("selected", "linked");
    this.selected = [];
    for (const [ref, marks] of this.byRef) {
      const how = matches(ref) ? "selected" : linked.has(ref) ? "linked" : "";
      if (!how) continue;
      for (const mark of marks) mark.classList.add(how);
      this.selected.push(...marks);
    }
  }
}

/** The reference of what is at a place of a picture, or "". The lines around arrows that are easy to hit have none. */
export function refAt(target) {
  const own = target.closest("[data-ref]");
  return (own ?? (target.classList.contains("hit") ? target.parentNode.querySelector("[data-ref]") : null))
    ?.dataset.ref ?? "";
}
