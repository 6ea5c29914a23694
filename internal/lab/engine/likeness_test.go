package engine_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"parley/internal/lab/engine"
)

// runBy is the setting of a run.
func runBy(protocol string, flags ...string) map[string]any {
	m := make(map[string]string)
	for pair := range slices.Chunk(flags, 2) {
		m[pair[0]] = pair[1]
	}
	return map[string]any{"protocol": protocol, "flags": m}
}

func knows(t *testing.T, e *engine.Engine, run map[string]any, of string, at uint64) engine.KnowledgeAnswer {
	t.Helper()
	return answers[engine.KnowledgeAnswer](t, e, map[string]any{"ask": "knowledge", "run": run, "of": of, "at": at})
}

func ends(t *testing.T, e *engine.Engine, run map[string]any) uint64 {
	t.Helper()
	return answers[engine.RunAnswer](t, e, map[string]any{"ask": "run", "run": run}).Report.Events
}

// With n = 3 and m = 1, P2 cannot tell a lying General from a lying P3.
func TestKnowledgeOfGenerals(t *testing.T) {
	e := newEngine()
	for faulty, other := range map[string]string{"1=twofaced": "3=flip", "3=flip": "1=twofaced"} {
		of := runBy("om", "n", "3", "m", "1", "beyond-bound", "true", "faulty", faulty)
		a := knows(t, e, of, "P2", ends(t, e, of))
		if !slices.Contains(a.Open, "which of P1 and P3 are faulty") {
			t.Errorf("%s: open are %q", faulty, a.Open)
		}
		i := slices.IndexFunc(a.Runs, func(r engine.Alike) bool { return r.Flags["faulty"] == other && len(r.Flags) == 1 })
		if i < 0 || a.Runs[i].Until != 0 || a.Model == nil || a.Tried < 100 || a.Other < 10 || a.Runs[0].Flags["faulty"] == "" {
			t.Errorf("%s: %s is not among %+v", faulty, other, a)
			continue
		}
		// The other run is what it says, and compare agrees that P2 sees the same.
		flags := runBy("om", "n", "3", "m", "1", "beyond-bound", "true", "faulty", other)
		c := answers[engine.CompareAnswer](t, e, map[string]any{"ask": "compare", "a": of, "b": flags})
		if !c.Processes[1].Same || c.Processes[1].Sees != [2]*engine.Line{} || c.Processes[0].Same || c.Processes[2].Same {
			t.Errorf("%s against %s: %+v", faulty, other, c.Processes)
		}
		if c.Same || c.First[0] == nil || c.First[1] == nil || len(c.Fields) == 0 || c.Settings[0].Is != [2]string{faulty, other} {
			t.Errorf("%s against %s: %+v", faulty, other, c)
		}
	}
	// With n = 4 it decides right in all runs that look the same to it, although it cannot tell who lies.
	for _, faulty := range []string{"1=moves:0-3-0-1", "3=flip"} {
		of := runBy("om", "n", "4", "m", "1", "faulty", faulty)
		a := knows(t, e, of, "P2", ends(t, e, of))
		if !slices.Contains(a.Open, "which of P1 and P3 are faulty") {
			t.Errorf("n = 4, %s: open are %q", faulty, a.Open)
		}
		for _, r := range a.Runs {
			if d := r.Decides[slices.IndexFunc(r.Decides, func(o engine.Outcome) bool { return o.Name == "P2" })]; len(r.Broken) > 0 {
				t.Errorf("%s: P2 decides %s in a run that breaks %q: %+v", faulty, d.Decides, r.Broken, r)
			}
		}
	}
}

// Knowledge grows with time: a run that looks different to a process never looks the same to it again.
func TestKnowledgeGrows(t *testing.T) {
	e := newEngine()
	for _, of := range []map[string]any{
		runBy("eig", "n", "4", "m", "1", "faulty", "2=twofaced"),
		runBy("twophase", "n", "3", "values", "yes,yes,no"),
		runBy("causal", "n", "3"),
	} {
		events := ends(t, e, of)
		last, seen := -1, -1
		for at := uint64(0); at <= events; at += max(events/12, 1) {
			a := knows(t, e, of, "P1", at)
			if last >= 0 && a.Same > last || a.Seen < seen {
				t.Errorf("%v: after %d events %d runs look the same and %d events are seen; before, %d and %d", of, at,
					a.Same, a.Seen, last, seen)
			}
			last, seen = a.Same, a.Seen
			for _, r := range a.Runs {
				if r.Until > 0 && r.Until <= at || len(r.Says) == 0 {
					t.Errorf("%v: after %d events: %+v", of, at, r)
				}
			}
		}
		if first := knows(t, e, of, "P1", 0); first.Same != first.Other || first.Other == 0 || last == first.Other {
			t.Errorf("%v: at first all %d runs look the same, got %d, and at the end %d", of, first.Other, first.Same, last)
		}
	}
}

// In two-phase commit a participant does not know how another one voted before it hears of the decision.
func TestKnowledgeOfVotes(t *testing.T) {
	e := newEngine()
	of := runBy("twophase", "n", "3", "values", "yes")
	const open = "what P3 proposes: yes or no"
	if a := knows(t, e, of, "P2", 4); !slices.Contains(a.Open, open) {
		t.Errorf("at first: %q", a.Open)
	}
	if a := knows(t, e, of, "P2", ends(t, e, of)); slices.Contains(a.Open, open) {
		t.Errorf("at the end: %q", a.Open)
	}
}

// A recorded run has no neighbors, and a faulty process is not asked.
func TestKnowledgeRefused(t *testing.T) {
	e := newEngine()
	of := runBy("om", "n", "4", "m", "1", "faulty", "3=flip")
	text := answers[engine.ExportAnswer](t, e, map[string]any{"ask": "export", "form": "trace", "run": of}).Text
	a := knows(t, e, map[string]any{"trace": text}, "P2", 99)
	if !strings.Contains(a.Why, "recorded") || a.Tried != 0 || a.Seen == 0 || len(a.Marks) == 0 {
		t.Errorf("%+v", a)
	}
	for name, says := range map[string]string{"P3": "is faulty", "P9": "P9"} {
		q := map[string]any{"ask": "knowledge", "run": of, "of": name, "at": 0}
		var got struct{ Error engine.Failure }
		b := e.Answer(t.Context(), must(json.Marshal(q)), nil)
		if err := json.Unmarshal(b, &got); err != nil || !strings.Contains(got.Error.Message, says) {
			t.Errorf("%s: %s, %v", name, b, err)
		}
	}
}

// Two equal runs are equal, and no process sees the same in runs of different protocols.
func TestCompare(t *testing.T) {
	e := newEngine()
	compare := func(a, b map[string]any) engine.CompareAnswer {
		return answers[engine.CompareAnswer](t, e, map[string]any{"ask": "compare", "a": a, "b": b})
	}
	om := runBy("om", "n", "4", "m", "1", "faulty", "3=flip")
	same := compare(om, om)
	if !same.Same || same.Equal != ends(t, e, om) || len(same.Settings)+len(same.Fields) > 0 || !same.Processes[2].Same {
		t.Errorf("%+v", same)
	}
	// Another seed means other delays, which no process of a protocol in rounds notices.
	seed := compare(om, runBy("om", "n", "4", "m", "1", "faulty", "3=flip", "seed", "2"))
	if seed.Same || !slices.ContainsFunc(seed.Settings, func(d engine.Differing) bool { return d.Name == "seed" }) {
		t.Errorf("%+v", seed)
	}
	for _, p := range seed.Processes {
		if !p.Same {
			t.Errorf("%s sees other delays: %+v", p.Name, p)
		}
	}
	other := compare(om, runBy("eig", "n", "4", "m", "1"))
	if other.Comparable || len(other.Processes) != 4 || other.Settings[len(other.Settings)-1].Name != "protocol" || len(other.Verdicts) < 4 {
		t.Errorf("%+v", other)
	}
	// A crash is noticed by those who miss messages.
	blocked := compare(runBy("twophase", "n", "3"), runBy("twophase", "n", "3", "crashes", "[{process: 1, when: 500}]"))
	if blocked.Equal == 0 || slices.ContainsFunc(blocked.Processes, func(c engine.Compared) bool { return c.Same }) {
		t.Errorf("%+v", blocked)
	}
}
