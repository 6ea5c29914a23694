package browser_test

import (
	"encoding/json"
	"slices"
	"testing"

	"parley/catalog"
	"parley/docs/scenarios"
	"parley/internal/lab/engine"
	"parley/internal/lab/link"
)

// Every link of the guide opens what it names: the run with the trace that the engine makes of it, at its event and with
// its selection; or the form of its search.
func TestGuideLinks(t *testing.T) {
	t.Parallel()
	b := one(t)
	b.follow("#/guide")
	b.until(`document.querySelectorAll(".steps .ways a").length > 50`)
	links := evaluate[[]string](b, `[...document.querySelectorAll(".lessons a")].map(a => a.getAttribute("href"))`)
	if len(links) < 130 {
		t.Errorf("%d links", len(links))
	}
	b.clean()
	// The page waits before it writes an address, so several tabs follow links at the same time.
	for some := range slices.Chunk(links, (len(links)+3)/4) {
		t.Run(some[0], func(t *testing.T) {
			t.Parallel()
			b, g := one(t), newGuided(t)
			for _, to := range some {
				t.Run(to, func(t *testing.T) { g.follows(&tab{t: t, ctx: b.ctx}, to) })
			}
			b.clean()
		})
	}
}

// guided says what links of the guide must lead to.
type guided struct {
	native *engine.Engine
	texts  map[string]string // of the scenarios of the gallery
}

func newGuided(t *testing.T) guided {
	t.Helper()
	g := guided{engine.New(catalog.All(), scenarios.Files, "test"), make(map[string]string)}
	var about engine.About
	g.ask(t, `{"ask":"about"}`, &about)
	for _, c := range about.Gallery {
		g.texts[c.Name] = c.Text
	}
	return g
}

func (g guided) ask(t *testing.T, question string, into any) {
	t.Helper()
	if err := json.Unmarshal(g.native.Answer(t.Context(), []byte(question), nil), into); err != nil {
		t.Fatal(err)
	}
}

// follows follows a link.
func (g guided) follows(b *tab, to string) {
	t := b.t
	b.follow(to)
	l, err := link.Read(to)
	if err != nil {
		b.until(`document.querySelector(".model-words li") && location.hash === ` + literal(to))
		return
	}
	of := map[string]any{"flags": l.Flags}
	if l.Gallery != "" {
		of["scenario"] = g.texts[l.Gallery]
	} else {
		of["protocol"] = l.Protocol
	}
	var run engine.RunAnswer
	g.ask(t, question("run", of), &run)
	// The page writes where it is into the address, when it has shown the run.
	b.until(`location.hash.includes(` + literal("&h="+run.Report.Trace[:8]) + `)`)
	got, err := link.Read(evaluate[string](b, "location.hash"))
	if got.At == nil { // the end
		got.At = &run.Report.Events
	}
	if err != nil || *got.At != *l.At || got.Selected != l.Selected || got.Gallery != l.Gallery ||
		got.Protocol != l.Protocol {
		t.Errorf("the page is at %s", evaluate[string](b, "location.hash"))
	}
	b.until(`document.querySelector(".picture svg")`)
	if l.Selected != "" {
		b.until(`document.querySelector("#selected")`)
	}
}
