package browser_test

import "testing"

// count is an expression for the number of elements.
func count(selector string) string { return `document.querySelectorAll("` + selector + `").length` }

// A variable that is pressed shows its history. A value of it moves the cursor to the event that set it.
func TestHistoryOfVariable(t *testing.T) {
	t.Parallel()
	b := open(t, served(t))
	b.says(shown)
	b.follow("#/run?s=causal&n=3")
	b.says("State after event 54")
	const name = `[...document.querySelectorAll(".process dt button")].find(b => b.textContent === "from[1].lives[0].delivered")`
	b.until(name)
	evaluate[bool](b, name+`.click() ?? true`)
	b.says("History of fifo.from[1].lives[0].delivered")
	b.until(count(".history-row") + " === 3")
	const first = `document.querySelector(".history-row li button")`
	since := evaluate[string](b, first+".title")
	evaluate[bool](b, first+`.click() ?? true`)
	b.until(`"since event " + document.querySelector("#state").textContent.replace("State after event ", "") === ` + first + ".title")
	b.until(first + `.getAttribute("aria-current") === "step"`)
	if since == "" || evaluate[int](b, count(".history-row li.future")) == 0 {
		t.Errorf("%q: all values are from before the first event", since)
	}
	evaluate[bool](b, `(f => (f.value = "vector", f.dispatchEvent(new Event("input", {bubbles: true}))))(document.querySelector(".variable-filter"))`)
	b.until(`![...document.querySelectorAll(".process dt button")].some(b => !b.textContent.includes("vector"))`)
	evaluate[bool](b, `document.querySelector("[aria-label='Close the history']").click() ?? true`)
	b.until(count(".history") + " === 0")
	b.clean()
}

// The cone of an event shades what is neither in its past nor in its future, until something else is selected.
func TestCone(t *testing.T) {
	t.Parallel()
	b := open(t, served(t))
	b.says(shown)
	b.follow("#/run?s=causal&n=3&sel=e20")
	const box = `[...document.querySelectorAll(".selected-card input[type=checkbox]")][0]`
	b.until(box)
	if n := evaluate[int](b, count(".outside")); n != 0 {
		t.Errorf("%d marks are shaded at first", n)
	}
	evaluate[bool](b, box+`.click() ?? true`)
	b.until(count(".picture .outside") + " > 0")
	if evaluate[int](b, count(".picture .outside[data-ref=e20]")) > 0 ||
		evaluate[int](b, count(".picture [data-ref]:not(.outside)")) < 5 {
		t.Error("the event itself, or nearly everything, is shaded")
	}
	b.follow("#/run?s=causal&n=3&sel=e21")
	b.until(count(".outside") + " === 0")
	b.clean()
}

// Two information trees stand one below the other. The nodes in which they differ are marked, and the link has both.
func TestTreesCompared(t *testing.T) {
	t.Parallel()
	for name, address := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, address(t))
			b.says(shown)
			b.follow("#/run?g=article&tree=P2,P5")
			b.says("The information tree of P5")
			b.says("differ at 1 node")
			b.until(count(".node.differs") + " === 2")
			evaluate[bool](b, `(s => (s.value = "P3", s.dispatchEvent(new Event("change", {bubbles: true}))))(document.querySelector(".beside select"))`)
			b.says("The trees of P2 and P3 have the same values")
			b.until(`location.hash.includes("tree=P2,P3")`)
			b.until(count(".node.differs") + " === 0")
			b.clean()
		})
	}
}
