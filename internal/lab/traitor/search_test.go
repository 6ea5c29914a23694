package traitor_test

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/catalog"
	"parley/docs/scenarios"
	"parley/internal/lab/engine"
)

// A search whose last round is split finds what breaks a property beyond the bound, and its moves do so in a run.
func TestSplitSearchFindsMovesThatBreak(t *testing.T) {
	e := engine.New(catalog.All(), scenarios.Files, "test")
	ask := func(question map[string]any, answer any) {
		t.Helper()
		b, err := json.Marshal(question)
		if err != nil {
			t.Fatal(err)
		}
		got := e.Answer(t.Context(), b, nil)
		if err := json.Unmarshal(got, answer); err != nil || strings.HasPrefix(string(got), `{"error"`) {
			t.Fatalf("%.300s: %v", got, err)
		}
	}
	run := func(faulty string) map[string]any {
		return map[string]any{"protocol": "om", "flags": map[string]string{
			"n": "6", "m": "2", "beyond-bound": "true", "faulty": faulty,
		}}
	}
	var found struct{ Outcome, Property, Flag string }
	ask(map[string]any{
		"ask": "search", "run": run("2=moves:,3=moves:"), "free": []string{"P2", "P3"}, "property": "validity",
		"seconds": 60, "split": true,
	}, &found)
	if found.Outcome != "found" || found.Property != "validity" {
		t.Fatalf("%+v", found)
	}
	var made engine.RunAnswer
	ask(map[string]any{"ask": "run", "run": run(found.Flag)}, &made)
	for _, v := range made.Report.Verdicts {
		if v.Property == "validity" && v.Broken == "" {
			t.Errorf("%s breaks nothing", found.Flag)
		}
	}
}
