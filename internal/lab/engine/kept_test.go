package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/internal/lab/engine"
)

// A trace that an engine keeps answers the same questions as its text does, and only under its hash. The engine forgets
// the oldest trace when it has three newer ones.
func TestKeptTraces(t *testing.T) {
	e := newEngine()
	text := func(seed string) string {
		return answers[engine.ExportAnswer](t, e, map[string]any{
			"ask": "export", "form": "trace", "run": map[string]any{"protocol": "om", "flags": map[string]string{"seed": seed}},
		}).Text
	}
	keep := func(text string) (a engine.KeepAnswer) {
		t.Helper()
		if err := json.Unmarshal(e.KeepFile(strings.NewReader(text)), &a); err != nil || len(a.Hash) != 32 {
			t.Fatalf("%v: %+v", err, a)
		}
		return a
	}
	one := text("1")
	hash := keep(one).Hash
	for _, q := range []map[string]any{{"ask": "run"}, {"ask": "tables"}, {"ask": "story", "from": 1, "count": 50}, {"ask": "state", "at": 30}} {
		ask := func(run map[string]any) string {
			q["run"] = run
			return string(e.Answer(t.Context(), must(json.Marshal(q)), nil))
		}
		if got, want := ask(map[string]any{"kept": hash[:8]}), ask(map[string]any{"trace": one}); got != want {
			t.Errorf("%s: got %.300s, want %.300s", q["ask"], got, want)
		}
	}
	known := func(name string) bool {
		return !strings.Contains(string(e.Answer(t.Context(), []byte(`{"ask":"run","run":{"kept":"`+name+`"}}`), nil)), `"flag":"kept"`)
	}
	if !known(hash) || known(hash[:7]) || known("00000000") || known(hash+"0") {
		t.Error("the names of a kept trace are wrong")
	}
	for _, seed := range []string{"2", "3"} {
		keep(text(seed))
	}
	keep(one)
	keep(text("4"))
	if !known(hash) {
		t.Error("a trace that was kept again is forgotten")
	}
	for _, seed := range []string{"5", "6", "7"} {
		keep(text(seed))
	}
	if known(hash) {
		t.Error("the oldest trace is not forgotten")
	}
	for text, want := range map[string]string{"": "line 1: ", one[:len(one)/2]: "line ", "{}\n": "line 1: "} {
		if got := string(e.KeepFile(strings.NewReader(text))); !strings.HasPrefix(got, `{"error":{"message":"`+want) {
			t.Errorf("%.20q: %s", text, got)
		}
	}
}
