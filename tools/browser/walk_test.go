package browser_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// generals is a model with three generals, of whom P2 is faulty.
const generals = "#/walk?s=om&beyond-bound=true&faulty=2&m=1&n=3&values=1"

// text is an expression for the text of what a selector finds.
func text(selector string) string {
	return `(document.querySelector(` + strconv.Quote(selector) + `)?.textContent ?? "")`
}

// A finding of a search is walked from its start, move by move; the link to it leads there, and moves are taken back.
func TestWalkOfAFinding(t *testing.T) {
	t.Parallel()
	for name, address := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, address(t))
			b.says(shown)
			b.follow("#/explore?s=twophase&n=3&crashes=1&property=non-blocking&beyond-bound=true")
			b.press("Search")
			b.until(`document.querySelector(".end.found a.button")`)
			evaluate[bool](b, `document.querySelector(".end.found a.button").click() ?? true`)
			b.until(`document.querySelector(".taken .fares .bad")?.textContent.includes("non-blocking")`)
			hash := evaluate[string](b, "location.hash")
			if !strings.HasPrefix(hash, "#/walk?s=twophase&") || !strings.Contains(hash, "&mv=P1:1;P2:1;P3:1,") {
				t.Errorf("the address is %s", hash)
			}
			moves := evaluate[int](b, `document.querySelectorAll(".taken tbody tr").length`)
			b.press("Undo")
			b.until(`document.querySelectorAll(".taken tbody tr").length === ` + strconv.Itoa(moves-1))
			b.until(`!document.querySelector(".taken .fares .bad")`)
			b.until(`document.querySelector(".choices .tag.broken")?.textContent.includes("breaks non-blocking")`)
			b.until(`document.querySelector(".walk-run .picture svg") && document.querySelector(".walk-run .state .process")`)
			// The link leads to the same walk.
			b.follow("#/about")
			b.until(`document.querySelector(".about")`)
			b.follow(hash)
			b.until(`document.querySelectorAll(".taken tbody tr").length === ` + strconv.Itoa(moves))
			b.press("Start over")
			b.until(`!document.querySelector(".taken") && document.querySelectorAll(".choices button").length === 8`)
			b.clean()
		})
	}
}

// Random runs continue a walk; one of them is walked, and one is opened.
func TestWalkSamples(t *testing.T) {
	t.Parallel()
	for name, address := range forms {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := open(t, address(t))
			b.says(shown)
			b.follow(generals)
			b.until(`document.querySelector(".choices button")`)
			b.press("Sample 5 runs")
			b.until(`document.querySelectorAll(".samples li").length === 5`)
			b.press("Walk there")
			b.says("The end")
			b.press("Open in Run")
			b.says("from a walk")
			b.until(`document.querySelector(".picture svg") && location.hash.startsWith("#/run?t=")`)
			b.clean()
		})
	}
}

// A link with a move that is not possible says which one it is.
func TestWalkLinkRefused(t *testing.T) {
	t.Parallel()
	b := one(t)
	b.follow(generals + "&mv=P2-timer0,e99-P1")
	b.says("is not possible there. The walk ends before it.")
	b.until(`document.querySelectorAll(".taken tbody tr").length === 2 && document.querySelector(".choices button")`)
	b.follow("#/walk?s=" + shown + "&n=1000")
	b.until(`document.querySelector(".notice.trouble")`)
	b.clean()
}

// A walk is made with the keyboard alone.
func TestWalkKeys(t *testing.T) {
	t.Parallel()
	b := one(t)
	b.follow("#/explore?s=om&beyond-bound=true&faulty=2&m=1&n=3&values=1")
	b.until(`document.querySelector(".main-buttons a")`)
	b.tabTo(".main-buttons a", "Walk it yourself")
	b.keys(kb.Enter)
	b.until(`document.querySelector(".choices button")`)
	rows := func(n int) {
		b.t.Helper()
		b.until(`document.querySelectorAll(".taken tbody tr").length === ` + strconv.Itoa(n))
	}
	rows(1)
	b.keys("1")
	rows(2)
	b.keys(kb.ArrowRight) // to a choice
	b.until(`document.querySelectorAll(".choices button").length > 1`)
	n := evaluate[int](b, `document.querySelectorAll(".taken tbody tr").length`)
	b.until(text(".choices li:nth-child(2)"))
	second := evaluate[string](b, `document.querySelector(".choices li:nth-child(2) button").dataset.move`)
	b.keys(kb.ArrowDown)
	b.until(`document.activeElement.matches(".choices li:first-child button")`)
	b.keys(kb.ArrowDown + kb.Enter)
	rows(n + 1)
	b.until(`location.hash.endsWith(` + strconv.Quote(second) + `)`)
	b.keys(kb.Backspace)
	rows(n)
	b.keys("2")
	b.until(`location.hash.endsWith(` + strconv.Quote(second) + `)`)
	b.until(`document.activeElement !== document.body`)
	b.clean()
}
