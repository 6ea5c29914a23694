package browser_test

import (
	"encoding/json"
	"testing"

	"parley/catalog"
	"parley/docs/scenarios"
	"parley/internal/lab/engine"
	"parley/internal/lab/link"
)

// Every link of the guide opens what it names: the run with the trace that the engine makes of it, at its event and with
// its selection; or the form of its search.
func TestGuideLinks(t *testing.T) {
	native := engine.New(catalog.All(), scenarios.Files, "test")
	ask := func(question string, into any) {
		t.Helper()
		if err := json.Unmarshal(native.Answer(t.Context(), []byte(question), nil), into); err != nil {
			t.Fatal(err)
		}
	}
	var about engine.About
	ask(`{"ask":"about"}`, &about)
	texts := make(map[string]string)
	for _, c := range about.Gallery {
		texts[c.Name] = c.Text
	}
	b := one(t)
	b.follow("#/guide")
	b.until(`document.querySelectorAll(".steps .ways a").length > 50`)
	links := evaluate[[]string](b, `[...document.querySelectorAll(".lessons a")].map(a => a.getAttribute("href"))`)
	if len(links) < 130 {
		t.Errorf("%d links", len(links))
	}
	for _, to := range links {
		t.Run(to, func(t *testing.T) {
			b := &tab{t: t, ctx: b.ctx}
			b.follow(to)
			l, err := link.Read(to)
			if err != nil {
				b.until(`document.querySelector(".model-words li") && location.hash === ` + literal(to))
				return
			}
			of := map[string]any{"flags": l.Flags}
			if l.Gallery != "" {
				of["scenario"] = texts[l.Gallery]
			} else {
				of["protocol"] = l.Protocol
			}
			var run engine.RunAnswer
			ask(question("run", of), &run)
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
		})
	}
	b.clean()
}
