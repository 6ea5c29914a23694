package browser_test

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// What is still to come is faint also if it is selected, and nothing is faint at the last event.
func TestFutureIsFaint(t *testing.T) {
	t.Parallel()
	b := one(t)
	b.screen(1440, 900, "light")
	b.follow("#/compare?a=" + liar + "&b=" + relay + "&at=39")
	b.until(`document.querySelectorAll(".side .picture svg").length >= 2`)
	b.press("Story")
	const message = `[...document.querySelectorAll(".side:last-of-type .line button")].findLast(b => b.innerText.includes("receives"))`
	b.until(message)
	evaluate[bool](b, message+`.click() ?? true`)
	evaluate[bool](b, `document.querySelector(".compare-tools .segments button").click() ?? true`)
	const selected = `document.querySelector(".side .picture .selected")`
	b.until(selected + ` && getComputedStyle(` + selected + `).opacity === "1"`)
	b.keys(kb.Home)
	b.until(`document.querySelector(".side .whereabouts").innerText.startsWith("event 0")`)
	b.drawn()
	marks := evaluate[[]string](b, `[...document.querySelectorAll(".side .picture .selected")].map(e => e.getAttribute("class") + " " +
		getComputedStyle(e).opacity)`)
	for _, mark := range marks {
		if !strings.Contains(mark, "future") || !strings.HasSuffix(mark, " 0.3") {
			t.Errorf("selected and not faint: %s", mark)
		}
	}
	if len(marks) == 0 {
		t.Error("nothing is selected")
	}

	b.follow("#/walk?s=twophase&beyond-bound=true&crashes=1&n=3&property=non-blocking&mv=P1:1;P2:1;P3:1,P1-request!2,e5-P2," +
		"e6-P3,P2-request,P3-request,P2-timer0,P3-timer0,e17-P3,e19-P2,e21-P2,e23-P3,P2-timer0")
	b.until(`[...document.querySelectorAll(".walk-run .picture svg .stage[data-since]")].some(e => e.dataset.since > 20)`)
	b.until(`document.querySelector(".walk-run .veil").getAttribute("width") === "0"`)
	evaluate[bool](b, `document.querySelector(".walk-run .steps button").click() ?? true`)
	b.until(`Number(document.querySelector(".walk-run .veil").getAttribute("width")) > 0`)
	b.clean()
}

// On a telephone all entries of the menu are in view.
func TestMenuIsWhole(t *testing.T) {
	t.Parallel()
	b := one(t)
	for _, width := range []int64{320, 360, 390, 560, 900} {
		b.screen(width, 844, "light")
		b.drawn()
		cut := evaluate[[]string](b, `[...document.querySelectorAll(".top nav a")].filter(a => {
			const r = a.getBoundingClientRect(), there = document.elementFromPoint(r.right - 2, r.top + r.height / 2);
			return r.left < 0 || r.right > innerWidth || there !== a;
		}).map(a => a.innerText)`)
		if len(cut) > 0 {
			t.Errorf("%d pixels: %q are cut", width, cut)
		}
	}
	b.clean()
}

// The panel of the event by which a process is blocked names the crash, and leads to it.
func TestBlockedNamesTheCrash(t *testing.T) {
	t.Parallel()
	b := one(t)
	b.follow("#/run?g=twophase-blocks&sel=e45")
	b.says("What blocks it")
	b.until(`[...document.querySelectorAll(".selected-card .chain button")].some(b => /P1.*crashes/.test(b.innerText))`)
	b.clean()
}
