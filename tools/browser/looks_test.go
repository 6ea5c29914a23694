package browser_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// look is a state of the page that a test looks at.
type look struct {
	name     string
	fragment string     // leads to the view
	do       func(*tab) // brings the view into the state, from a page that was just loaded
}

// loads counts how often a page was loaded afresh: another fragment alone would not load it.
var loads atomic.Int64

// visit loads the page afresh and brings it into the state.
func (l look) visit(b *tab) {
	b.t.Helper()
	origin := evaluate[string](b, "location.origin")
	b.do(chromedp.Navigate(fmt.Sprintf("%s/?%d%s", origin, loads.Add(1), l.fragment)))
	b.until(`document.querySelector("main h1")`)
	l.do(b)
	// What was drawn last is on the screen, and no picture or answer is missing.
	b.until(`!document.querySelector("main .boot, .busy")`)
	b.drawn()
}

// drawn waits until the page has drawn everything.
func (b *tab) drawn() {
	b.t.Helper()
	evaluate[bool](b, `new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`)
}

// screen sets the size of the screen and the look that the reader has asked the system for; nothing moves by itself.
func (b *tab) screen(width, height int64, scheme string) {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(width, height), chromedp.Func(func(ctx context.Context, to *chromedp.Target) error {
		_, err := cdp.Call(ctx, to, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
			},
		})
		return err
	}))
}

// waits returns what waits until a condition is true.
func waits(condition string) func(*tab) {
	return func(b *tab) {
		b.t.Helper()
		b.until(condition)
	}
}

// one opens the served page.
func one(t *testing.T) *tab {
	t.Helper()
	b := open(t, served(t))
	b.says(shown)
	return b
}
