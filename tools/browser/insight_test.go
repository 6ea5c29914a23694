package browser_test

import "testing"

// One press on a broken property moves the cursor to the first event that breaks it. A press on a time of a picture moves
// it there, and what processes hold follows the cursor. The proof of what holds is folded.
func TestCursorFollowsBreachAndTime(t *testing.T) {
	t.Parallel()
	b := open(t, served(t))
	b.says(shown)
	b.follow("#/run?g=threephase-partition")
	b.press("First broken at event 55: P3 decides abort")
	b.until(`document.querySelector(".whereabouts").textContent.includes("55 of 61")`)
	b.until(`document.querySelector(".witness.first[aria-pressed=true]")`)
	b.until(`document.querySelector(".parting:not(.future)")`)
	evaluate[bool](b, `(() => {
		const line = document.querySelector(".picture line.guide[data-value='2000']"), box = line.getBoundingClientRect();
		line.dispatchEvent(new MouseEvent("click", {bubbles: true, clientX: box.x, clientY: box.y + 3}));
		return true;
	})()`)
	b.until(`document.querySelector(".whereabouts").textContent.includes("t = 1,600")`)
	b.says("the acknowledgements of P3, P4")
	b.until(`document.querySelector(".parting.future")`)
	b.follow("#/run?g=bank-causal&at=10")
	b.says("holds 1000")
	b.until(`!document.querySelector(".replica.parts")`)
	b.follow("#/run?g=bank-causal&at=26")
	b.until(`document.querySelectorAll(".replica.parts").length === 2`)
	b.follow("#/run?g=total-order")
	b.until(`document.querySelector(".proof:not([open]) summary")`)
	evaluate[bool](b, `document.querySelector(".proof summary").click() ?? true`)
	b.until(`document.querySelector(".proof[open] p")`)
	b.clean()
}
