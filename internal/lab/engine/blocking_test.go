package engine_test

import (
	"io/fs"
	"slices"
	"testing"

	"parley/docs/scenarios"
	"parley/internal/lab/engine"
)

// The event by which a process is blocked names the crash of the process for which it waits; no other event does.
func TestCrashThatBlocks(t *testing.T) {
	e := newEngine()
	text, err := fs.ReadFile(scenarios.Files, "twophase-blocks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]any{"scenario": string(text)}
	var blocked []string
	for _, l := range answers[engine.StoryAnswer](t, e, map[string]any{"ask": "story", "run": of, "from": 1, "count": 500}).Lines {
		got := answers[engine.EventAnswer](t, e, map[string]any{"ask": "event", "run": of, "event": l.Event})
		if l.Says != "is blocked" {
			if len(got.Crashes) > 0 {
				t.Errorf("%s %s: %v", l.At, l.Says, got.Crashes)
			}
			continue
		}
		blocked = append(blocked, l.At)
		if len(got.Crashes) != 1 || got.Crashes[0].At != "P1" || got.Crashes[0].Says != "crashes" {
			t.Errorf("%s is blocked by %v", l.At, got.Crashes)
		}
	}
	if !slices.Equal(blocked, []string{"P2", "P3", "P4"}) {
		t.Errorf("blocked are %q", blocked)
	}
}
