package browser_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// viewed are all views of the page, in the states that show all their parts.
var viewed = []look{
	{"gallery", "#/gallery", waits(`document.querySelector(".thumb svg")`)},
	{"a synchronous run", "#/run?g=article&at=150&sel=P5/1.2", func(b *tab) {
		b.until(`document.querySelectorAll(".picture svg").length >= 2 && document.querySelector(".tables .picked")`)
	}},
	{"an asynchronous run", "#/run?g=bank-causal&sel=e12", waits(`document.querySelector("#selected") && document.querySelector(".picture svg")`)},
	{"two trees and a history", "#/run?g=article&tree=P2,P5", func(b *tab) {
		b.until(`document.querySelector(".node.differs") && document.querySelector(".process dt button")`)
		evaluate[bool](b, `document.querySelector(".process dt button").click() ?? true`)
		b.until(`document.querySelector(".history-row")`)
	}},
	{"a level", "#/traitor?level=1", waits(`document.querySelector(".option.lie input")`)},
	{"a level that is won", "#/traitor?level=1&moves=P2:1-3-0-1", waits(`document.querySelector(".apart svg")`)},
	{"explore", "#/explore?s=om&n=3&m=1&beyond-bound=true&step=round&property=validity", func(b *tab) {
		b.press("Search")
		b.until(`document.querySelector(".end.found")`)
	}},
	{"a walk", "#/walk?s=twophase&n=3&crashes=1&mv=P1:1;P2:1;P3:1,P3-request!0", func(b *tab) {
		b.press("Sample 5 runs")
		b.until(`document.querySelector(".samples li") && document.querySelector(".walk-run .picture svg")`)
	}},
	{"two runs", "#/compare?a=" + liar + "&b=" + relay, waits(`document.querySelectorAll(".side .picture svg").length >= 2`)},
	{"two stories", "#/compare?a=g:twophase-blocks&b=g:threephase&show=story", waits(`document.querySelectorAll(".side .line").length > 20`)},
	{"what P2 sees", "#/run?s=om&m=1&n=3&f=1:twofaced&beyond-bound=true&sees=P2", waits(
		`document.querySelector(".alike li") && document.querySelector(".unseen")`)},
	{"cost", "#/cost?m=2&most=15&quantity=messages", waits(`document.querySelector(".costs svg")`)},
	{"live without a cluster", "#/live", stopped},
	{"live", "#/live", paused},
	{"guide", "#/guide", func(b *tab) {
		b.until(`document.querySelectorAll(".steps li").length > 50`)
		evaluate[bool](b, `document.querySelectorAll(".steps details").forEach(d => { d.open = true; }) ?? true`)
	}},
	{"about", "#/about", waits(`document.querySelector("main h1")`)},
	{"the form", "#/run?g=article", func(b *tab) {
		b.press("Change…")
		b.until(`document.querySelector(".form .theorem")`)
		evaluate[bool](b, `document.querySelectorAll(".form details").forEach(d => { d.open = true; }) ?? true`)
		b.until(`document.querySelector("textarea.whole")?.value`)
	}},
	{"the help", "#/gallery", func(b *tab) {
		evaluate[bool](b, `document.querySelector(".keys-button").click() ?? true`)
		b.until(`document.querySelector("dialog[open]")`)
	}},
}

// breach is a rule of axe that a page breaks.
type breach struct {
	ID, Impact, Help string
	Nodes            []struct {
		Target         []any
		HTML           string
		FailureSummary string
	}
}

// axe returns the serious breaches of rules of accessibility in the page as it is.
func (b *tab) axe(program string) []breach {
	b.t.Helper()
	if !evaluate[bool](b, `typeof axe === "object"`) {
		evaluate[bool](b, program+"\n;true")
	}
	return evaluate[[]breach](b, `axe.run({resultTypes: ["violations"], preload: false}).then(({violations}) =>
		violations.filter(v => v.impact === "serious" || v.impact === "critical").map(v => ({ID: v.id, Impact: v.impact,
			Help: v.help, Nodes: v.nodes.map(n => ({Target: n.target, HTML: n.html, FailureSummary: n.failureSummary}))})))`)
}

func (v breach) String() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s (%s): %s, %d times", v.ID, v.Impact, v.Help, len(v.Nodes))
	for _, n := range v.Nodes[:min(len(v.Nodes), 5)] {
		fmt.Fprintf(&out, "\n  %v: %.160s\n    %s", n.Target, n.HTML, strings.ReplaceAll(n.FailureSummary, "\n", "\n    "))
	}
	return out.String()
}

// No view breaks a rule of accessibility that axe calls serious or critical, light or dark, on a phone or a screen.
func TestAxe(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("testdata/axe/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, width := range []int64{360, 1440} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			t.Parallel()
			b := one(t)
			for _, l := range viewed {
				t.Run(l.name, func(t *testing.T) {
					b := &tab{t: t, ctx: b.ctx}
					b.screen(width, 900, "light")
					l.visit(b)
					for _, scheme := range []string{"light", "dark"} { // the page follows the system without a load
						b.screen(width, 900, scheme)
						b.drawn()
						for _, v := range b.axe(string(program)) {
							t.Errorf("%s: %s", scheme, v)
						}
					}
				})
			}
			b.clean()
		})
	}
}

// A page that breaks rules is found.
func TestAxeFinds(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile("testdata/axe/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<!DOCTYPE html><html lang="en"><title>x</title><main><h1>x</h1><button></button>
			<p style="color:#ccc;background:#fff">pale</p></main>`))
	}))
	defer s.Close()
	b := open(t, s.URL)
	var got []string
	for _, v := range b.axe(string(program)) {
		got = append(got, v.ID)
	}
	if strings.Join(got, " ") != "button-name color-contrast" {
		t.Errorf("found %q", got)
	}
}

// The vendored file is the one that VENDOR.md names.
func TestAxeSum(t *testing.T) {
	table, err := os.ReadFile("testdata/axe/VENDOR.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("testdata/axe/axe.min.js")
	if err != nil {
		t.Fatal(err)
	}
	if sum := sha256.Sum256(program); !strings.Contains(string(table), "`axe.min.js` | axe-core | 4.14.1 |") ||
		!strings.Contains(string(table), "`"+hex.EncodeToString(sum[:])+"`") {
		t.Errorf("VENDOR.md does not have the sum %x", sum)
	}
}
