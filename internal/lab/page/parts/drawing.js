// A picture that is not about one run: a chart, or an argument. It is drawn once and cannot be scrubbed.

import {html, useLayoutEffect, useRef} from "../lib.js";
import {Pan} from "./pan.js";
import {parsed, trim} from "./picture.js";

/**
 * @param {{svg: string, label: string, class?: string, prepare?: (svg: SVGSVGElement) => void | SVGSVGElement[]}} props
 *     prepare changes the picture before it is measured, or returns pictures to show instead, one below the other
 */
export function Drawing({svg, label, class: name = "", prepare}) {
  const frame = useRef(null);
  useLayoutEffect(() => {
    const drawn = parsed(svg);
    frame.current.replaceChildren(...drawn ? [drawn] : []);
    if (!drawn) return;
    drawn.setAttribute("aria-label", label);
    drawn.querySelector(":scope > title")?.remove(); // it would pop up everywhere
    const pieces = prepare?.(drawn);
    if (pieces) frame.current.replaceChildren(...pieces);
    else trim(drawn, 2);
  }, [svg]);
  return html`<div class="drawing ${name}"><${Pan} label=${label} box=${frame}/></div>`;
}
