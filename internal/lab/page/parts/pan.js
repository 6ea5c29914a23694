// A box that scrolls when its content is too large. Only then it can be reached by Tab, so that the arrow keys scroll it.

import {html, useLayoutEffect, useRef, useState} from "../lib.js";

/** @param {{class?: string, label: string, box?: {current: any}}} props label says what is in it */
export function Pan({class: name = "pan", label, box, children, ...rest}) {
  const own = useRef(null);
  const [scrolls, setScrolls] = useState(false);
  useLayoutEffect(() => {
    const look = () => {
      const b = own.current;
      setScrolls(b.scrollWidth > b.clientWidth + 1 || b.scrollHeight > b.clientHeight + 1);
    };
    const watch = new ResizeObserver(look);
    watch.observe(own.current);
    const changes = new MutationObserver(look);
    changes.observe(own.current, {childList: true, subtree: true});
    look();
    return () => {
      watch.disconnect();
      changes.disconnect();
    };
  }, []);
  const take = element => {
    own.current = element;
    if (box) box.current = element;
  };
  return html`<div class=${name} ref=${take} tabindex=${scrolls ? 0 : null} role=${scrolls ? "group" : null}
    aria-label=${scrolls ? label : null} ...${rest}>${children}</div>`;
}
