package engine_test

import (
	"strings"
	"testing"

	"parley/internal/lab/engine"
	"parley/internal/lab/link"
)

// settingOf returns the run of a link.
func settingOf(t *testing.T, about engine.About, to link.Run) map[string]any {
	t.Helper()
	of := map[string]any{"flags": to.Flags}
	if to.Protocol != "" {
		of["protocol"] = to.Protocol
		return of
	}
	for _, c := range about.Gallery {
		if c.Name == to.Gallery {
			of["scenario"] = c.Text
			return of
		}
	}
	t.Fatalf("no scenario %q", to.Gallery)
	return nil
}

// The guide has every lesson. Its links lead to runs and searches that exist, and to events in them; what a link says
// there is to see happens at a process that the words name.
func TestGuide(t *testing.T) {
	e := newEngine()
	about := answers[engine.About](t, e, map[string]any{"ask": "about"})
	steps := answers[engine.GuideAnswer](t, e, map[string]any{"ask": "guide"}).Steps
	runs, moments, searches := make(map[string]int), make(map[string]int), 0
	for _, s := range steps {
		if s.Title == "" || len(s.Predict) == 0 || len(s.Explain) == 0 || len(s.Runs) == 0 {
			t.Errorf("%+v", s)
		}
		for _, l := range s.Runs {
			runs[s.Lesson]++
			if l.Search {
				searches++
				_, query, _ := strings.Cut(l.To, "?s=")
				protocol, _, _ := strings.Cut(query, "&")
				answers[engine.ModelAnswer](t, e, map[string]any{"ask": "model", "model": map[string]any{"protocol": protocol}})
				continue
			}
			to, err := link.Read(l.To)
			if err != nil || to.At == nil || *to.At != 0 {
				t.Fatalf("%s: %v", l.To, err)
			}
			answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": settingOf(t, about, to)})
		}
		for _, l := range s.See {
			moments[s.Lesson]++
			to, err := link.Read(l.To)
			if err != nil || to.At == nil || to.Selected == "" || l.Says == "" {
				t.Fatalf("%s: %v", l.To, err)
			}
			event := answers[engine.EventAnswer](t, e, map[string]any{
				"ask": "event", "event": *to.At, "run": settingOf(t, about, to),
			})
			if !strings.HasPrefix(to.Selected, "e") {
				continue
			}
			if !strings.Contains(l.Says, event.At) && !strings.Contains(event.Says, "lost") && !strings.Contains(event.Says, "adjusts") &&
				!strings.Contains(event.Says, "delivers a ") {
				t.Errorf("%s: %s, but %s %s", l.To, l.Says, event.At, event.Says)
			}
		}
	}
	for _, l := range about.Lessons {
		if runs[l.Number] < 3 || moments[l.Number] == 0 {
			t.Errorf("lesson %s has %d runs and %d moments", l.Number, runs[l.Number], moments[l.Number])
		}
	}
	if searches < 3 {
		t.Errorf("%d searches", searches)
	}
}
