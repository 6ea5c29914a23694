package engine_test

import (
	"io/fs"
	"strings"
	"testing"

	"parley/docs/scenarios"
	"parley/internal/lab/engine"
)

// The page says in words how a process is faulty whose messages were chosen one by one, by a reader or by a search.
func TestBehaviorInWords(t *testing.T) {
	e := newEngine()
	flags := map[string]string{"n": "3", "m": "1", "beyond-bound": "true", "faulty": "2=moves:1-3-0-1", "values": "1"}
	game := map[string]any{"protocol": "om", "flags": flags}
	found := answers[engine.ExploreAnswer](t, e, map[string]any{"ask": "explore", "model": map[string]any{
		"protocol": "om", "flags": map[string]string{"n": "3", "m": "1", "beyond-bound": "true", "faulty": "2", "values": "1"},
	}})
	for want, of := range map[string]map[string]any{
		"chosen messages": game, "as the search found": {"trace": found.Trace},
	} {
		run := answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": of})
		if got := run.Processes[1].Behavior; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		svg := answers[engine.PictureAnswer](t, e, map[string]any{"ask": "picture", "name": "rounds", "run": of}).SVG
		if !strings.Contains(svg, want) || strings.Contains(svg, "moves:") {
			t.Errorf("the picture does not say %q", want)
		}
	}
}

// The verdict names all processes that are blocked.
func TestBlockedAreNamed(t *testing.T) {
	text, err := fs.ReadFile(scenarios.Files, "twophase-blocks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]any{"scenario": string(text)}
	run := answers[engine.RunAnswer](t, newEngine(), map[string]any{"ask": "run", "run": of})
	for _, v := range run.Report.Verdicts {
		if want := "P2, P3 and P4 are blocked"; v.Property == "termination" && v.Broken != want {
			t.Errorf("got %q, want %q", v.Broken, want)
		}
	}
}
