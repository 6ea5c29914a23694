package browser_test

import (
	"strings"
	"testing"
)

// types writes a text into an input.
func (b *tab) types(selector, text string) {
	b.t.Helper()
	b.until(`document.querySelector(` + literal(selector) + `)`)
	evaluate[bool](b, `(f => (f.value = `+literal(text)+`, f.dispatchEvent(new Event("input", {bubbles: true}))))
		(document.querySelector(`+literal(selector)+`))`)
}

// The form promises what the verdict promises: too many faulty processes void the theorem, also if n and m are within the
// bound.
func TestFormCountsFaultyProcesses(t *testing.T) {
	t.Parallel()
	b := one(t)
	b.follow("#/run?s=om&n=3&f=2:flip")
	b.press("Change…")
	b.says("Not promised: validity (1 process is faulty, and m = 0).")
	b.says("om, n = 3, m = 0 ·")
	b.follow("#/run?s=om&n=4&m=1&f=2:flip")
	b.press("Change…")
	b.says("Within the bound: what the theorem promises must hold.")
	b.clean()
}

// As long as the form cannot make a run, the last run is faint, and the form says that it is not its run.
func TestOutdatedRunIsFaint(t *testing.T) {
	t.Parallel()
	b := one(t)
	b.follow("#/run?s=om&n=4&m=1")
	b.press("Change…")
	const faint = `document.querySelector(".run.outdated") && getComputedStyle(document.querySelector(".run")).opacity < 0.6`
	b.until(`document.querySelector(".form .theorem") && !document.querySelector(".run.outdated")`)
	b.types("#f-m", "2")
	b.says("Below is the last run that it made.")
	b.until(faint)
	b.types("#f-m", "1")
	b.until(`!document.querySelector(".run.outdated")`)
	b.types("#f-m", "1.5")
	b.until(faint)
	b.press("Close")
	b.until(`!document.querySelector(".run.outdated")`)
	b.clean()
}

// The mark of a lie is drawn over the color of its value, in both schemes.
func TestLiesAreMarked(t *testing.T) {
	t.Parallel()
	b := one(t)
	for _, scheme := range []string{"light", "dark"} {
		b.screen(1440, 900, scheme)
		b.follow("#/run?s=om&n=4&m=1&f=2:flip")
		b.until(`document.querySelector(".messages td.lie")`)
		for _, by := range []string{"by receiver", "by content"} {
			b.press(by)
			b.until(`document.querySelector(".messages td.lie")`)
			looks := evaluate[[]string](b, `[...document.querySelectorAll(".messages td.lie")].map(c => {
				const look = getComputedStyle(c);
				return look.backgroundImage + (look.backgroundColor === "rgba(0, 0, 0, 0)" ? " no color" : "");
			})`)
			for _, look := range looks {
				if !strings.Contains(look, "linear-gradient") || strings.Contains(look, "no color") {
					t.Errorf("%s, %s: %s", scheme, by, look)
				}
			}
		}
	}
	b.clean()
}

// A run that was changed does not have the title that the gallery gives to its scenario.
func TestChangedRunLosesTitle(t *testing.T) {
	t.Parallel()
	b := one(t)
	b.follow("#/compare?a=g:article&b=g:article;seed:9")
	b.until(`document.querySelectorAll(".side-head h2").length === 2`)
	titles := evaluate[[]string](b, `[...document.querySelectorAll(".side-head")].map(h => h.innerText)`)
	if strings.Contains(titles[0], "changed") || !strings.Contains(titles[0], "article") {
		t.Errorf("the first run is called %q", titles[0])
	}
	if !strings.Contains(titles[1], "changed") || strings.Contains(titles[1], "article") {
		t.Errorf("the second run is called %q", titles[1])
	}
	b.clean()
}

// The steps of the guide have one width, and the buttons of the game stand in one row. An honest game says what to do next.
func TestListsAreAligned(t *testing.T) {
	t.Parallel()
	b := one(t)
	b.screen(1440, 900, "light")
	b.follow("#/guide")
	b.until(`document.querySelectorAll(".lessons .steps > li").length > 10`)
	if n := evaluate[int](b, `new Set([...document.querySelectorAll(".lessons .steps > li")].map(li => li.offsetWidth)).size`); n != 1 {
		t.Errorf("the steps have %d widths", n)
	}
	b.follow("#/traitor?level=6")
	b.until(`document.querySelectorAll(".alike button").length > 1`)
	if n := evaluate[int](b, `new Set([...document.querySelectorAll(".alike button")].map(b => b.offsetTop)).size`); n != 1 {
		t.Errorf("the buttons stand in %d rows", n)
	}
	b.says("In this game you are on the side of the faults")
	b.press("Send, and close the round")
	b.says("You did not break it.")
	b.clean()
}

// A picture that ends before the run says where the cursor is. A bar that is selected keeps its texture.
func TestCursorPastThePicture(t *testing.T) {
	t.Parallel()
	b := one(t)
	b.follow("#/run?g=twophase-blocks")
	b.until(`document.querySelectorAll(".cursor-past").length >= 2`)
	b.until(`[...document.querySelectorAll(".cursor-past")].every(p => p.textContent === "the cursor is at 40,200 →")`)
	b.follow("#/run?g=twophase-blocks&at=45&sel=e45")
	b.until(`[...document.querySelectorAll(".cursor-past")].every(p => p.textContent === "")`)
	b.until(`document.querySelector("path.stage-hatch.selected")`)
	if width := evaluate[string](b, `getComputedStyle(document.querySelector("path.stage-hatch.selected")).strokeWidth`); width == "3px" {
		t.Error("the texture of a selected bar is drawn over")
	}
	b.clean()
}
