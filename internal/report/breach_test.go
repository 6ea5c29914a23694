package report

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"parley"
	"parley/catalog"
	"parley/docs/scenarios"
	"parley/internal/form"
	"parley/internal/input"
)

// In every scenario, the first event that breaks an Always property is the one that a search event by event finds, and
// all later events leave the property broken. So the search by halves in [parley.Property.Breach] is right.
func TestFirstEventIsFirstInScenarios(t *testing.T) {
	names, err := fs.Glob(scenarios.Files, "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, name := range names {
		r := reportOf(t, name)
		for i, v := range r.Judged {
			if v.Broken == nil || v.Property.Mode != parley.Always {
				continue
			}
			found++
			got, first := r.Verdicts[i], uint64(0)
			for k := range uint64(len(r.events)) {
				broken := v.Property.Check(upTo(r.history, k+1)) != nil
				if broken && first == 0 {
					first = k + 1
				}
				if !broken && first > 0 {
					t.Errorf("%s: %s is broken at event %d and holds again at event %d", name, v.Property.Name, first, k+1)
				}
			}
			if got.FirstEvent != first {
				t.Errorf("%s: %s: got event %d, want %d", name, v.Property.Name, got.FirstEvent, first)
			}
			if shown := got.Shown(); first > 0 && !strings.HasPrefix(shown, "first broken at event ") {
				t.Errorf("%s: %s: %s", name, v.Property.Name, shown)
			}
		}
	}
	if found < 10 {
		t.Errorf("%d broken properties: the scenarios have more", found)
	}
}

// reportOf runs a scenario.
func reportOf(t *testing.T, name string) *Report {
	t.Helper()
	text, err := fs.ReadFile(scenarios.Files, name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := form.ParseScenario(name, text)
	if err != nil {
		t.Fatal(err)
	}
	protocol, err := s.Protocol()
	if err != nil {
		t.Fatal(err)
	}
	p, err := input.Protocol(catalog.All(), protocol)
	if err != nil {
		t.Fatal(err)
	}
	f := form.New(p, pflag.NewFlagSet(p.Name, pflag.ContinueOnError))
	for _, view := range []string{"show", "tree", "rows", "alive", "width"} {
		f.Set().String(view, "", "")
	}
	if err := s.Apply(f); err != nil {
		t.Fatal(err)
	}
	setup, err := f.Setup()
	if err != nil {
		t.Fatal(err)
	}
	done, err := setup.Simulate()
	if err != nil {
		t.Fatal(err)
	}
	return New(setup.Run, done.Log, done.Facts)
}

// upTo returns the history up to an event.
func upTo(h *parley.History, last uint64) *parley.History {
	until := func(list []parley.ExternalEvent) []parley.ExternalEvent {
		n := 0
		for n < len(list) && list[n].Order <= last {
			n++
		}
		return list[:n]
	}
	return &parley.History{
		N: h.N, Faulty: h.Faulty, Naming: h.Naming, Requests: until(h.Requests), Deliveries: until(h.Deliveries),
		Indications: until(h.Indications), Restarts: until(h.Restarts),
	}
}
