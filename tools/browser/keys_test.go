package browser_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// mostTabs is how often Tab is pressed at most to reach something.
const mostTabs = 120

// keys presses keys, one after the other.
func (b *tab) keys(keys string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(keys))
}

// tabTo presses Tab until the focus is on what fits a selector and has a text.
func (b *tab) tabTo(selector, text string) { b.t.Helper(); b.walk(selector, text) }

// backTo is tabTo with Shift+Tab.
func (b *tab) backTo(selector, text string) {
	b.t.Helper()
	b.walk(selector, text, chromedp.KeyModifiers(chromedp.ModifierShift))
}

func (b *tab) walk(selector, text string, how ...chromedp.KeyOption) {
	b.t.Helper()
	there := `document.activeElement.matches(` + strconv.Quote(selector) + `) &&
		document.activeElement.textContent.includes(` + strconv.Quote(text) + `)`
	for range mostTabs {
		b.do(chromedp.KeyEvent(kb.Tab, how...))
		if evaluate[bool](b, there) {
			return
		}
	}
	b.t.Fatalf("Tab does not lead to %s %q; the focus is at %s", selector, text,
		evaluate[string](b, "document.activeElement.outerHTML.slice(0, 200)"))
}

// at waits until the bar of a run says where the cursor is.
func (b *tab) at(where string) {
	b.t.Helper()
	b.until(`document.querySelector(".whereabouts")?.textContent.replace(/\s+/g, " ").startsWith(` + strconv.Quote(where) + `)`)
}

// Everything is done with the keyboard alone: a run is found, opened, stepped through and changed, a level is won, and a
// search is made.
func TestKeyboardAlone(t *testing.T) {
	t.Parallel()
	b := one(t)
	b.screen(1440, 900, "light")

	b.tabTo("input[type=search]", "")
	b.keys("article")
	b.until(`document.querySelectorAll(".shot").length < 10`)
	b.tabTo(".shot a", "Tables 1 and 2")
	b.keys(kb.Enter)
	b.at("event 270 of 270")

	b.keys(kb.Home)
	b.at("event 0 of 270")
	b.keys(kb.ArrowRight + kb.ArrowRight + kb.ArrowLeft)
	b.at("event 1 of 270")
	b.keys("]")
	b.until(`document.querySelector(".whereabouts").textContent.includes("round 0")`)
	b.keys("]]")
	b.at("event 270 of 270 · round 2")
	b.keys("[")
	b.until(`document.querySelector(".whereabouts").textContent.includes("round 1")`)
	b.keys("3")
	b.until(`document.querySelector(".selected-card")?.textContent.includes("P3")`)
	b.keys(kb.Escape + kb.End)
	b.at("event 270 of 270")

	b.tabTo(".messages [role=gridcell]", "")
	b.keys(kb.ArrowRight + kb.ArrowDown + kb.ArrowDown + kb.Enter)
	b.until(`document.querySelector(".messages [aria-selected=true]") === document.activeElement`)
	b.until(`document.querySelector(".picture .message.selected")`)
	end := evaluate[string](b, `document.querySelector(".whereabouts").textContent`)
	b.keys("c")
	b.until(`document.querySelector(".whereabouts").textContent !== ` + strconv.Quote(end))
	b.until(`document.querySelector("#selected")`)
	cause := evaluate[string](b, `document.querySelector(".whereabouts").textContent`)
	b.keys("e")
	b.until(`document.querySelector(".whereabouts").textContent !== ` + strconv.Quote(cause))
	b.keys(kb.Escape + kb.End)
	b.until(`!document.querySelector("#selected")`)
	b.at("event 270 of 270")

	b.backTo(`[aria-label="Whose tree"] button`, "P4")
	b.keys(kb.Enter)
	b.says("The information tree of P4")

	b.backTo(".title button", "Change…")
	b.keys(kb.Enter)
	b.until(`document.querySelector(".form .theorem")`)
	b.tabTo(".form input[type=number], .form input", "")
	b.backTo(".title button", "Close")
	b.keys(kb.Enter)
	b.until(`!document.querySelector(".form")`)

	b.backTo(".top-tools button", "Copy link")
	b.keys(kb.Enter)
	b.until(`[...document.querySelectorAll(".top-tools button")].some(b => b.textContent === "Link copied")`)

	b.keys("?")
	b.until(`document.querySelector("dialog[open]")`)
	b.keys(kb.Escape)
	b.until(`!document.querySelector("dialog[open]")`)

	b.backTo("nav a", "Be the traitor")
	b.keys(kb.Enter)
	b.until(`document.querySelector(".option.lie input")`)
	b.tabTo(".option input", "")
	b.until(`document.activeElement.checked`)
	b.keys(kb.ArrowDown) // from the honest option to the first lie
	b.until(`document.querySelector(".option.lie.chosen")`)
	b.tabTo("button", "Send, and close the round")
	b.keys(kb.Enter)
	b.says("You did it")
	if hash := evaluate[string](b, "location.hash"); !strings.HasPrefix(hash, "#/traitor?level=1&moves=P2:") {
		t.Errorf("the address is %s", hash)
	}

	b.backTo("nav a", "Explore")
	b.keys(kb.Enter)
	b.until(`document.querySelector("a.preset")`)
	b.tabTo("a.preset", "Three generals, one traitor")
	b.keys(kb.Enter)
	b.until(`document.querySelector('a.preset[aria-current="true"]')`)
	b.tabTo("button", "Search")
	b.keys(kb.Enter)
	b.until(`document.querySelector(".end.found")`)
	b.clean()
}
