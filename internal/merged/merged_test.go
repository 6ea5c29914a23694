package merged_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/catalog"
	"parley/internal/merged"
	"parley/trace"
)

// files returns the traces of the nodes with the given numbers, of which node1 is two-faced.
func files(t *testing.T, machine string, nodes ...string) (all []trace.Trace) {
	t.Helper()
	for _, node := range nodes {
		name := machine + ".node" + node + ".jsonl"
		b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "traces", name))
		if err != nil {
			t.Fatal(err)
		}
		some, err := trace.ReadAll(name, bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	return all
}

func show(t *testing.T, traces []trace.Trace, machine string, slot uint64) (*merged.Shown, error) {
	t.Helper()
	n, err := merged.New(catalog.All(), traces)
	if err != nil {
		return nil, err
	}
	return n.Show(machine, slot)
}

const group, stream = "group-order", "agree-eig-1-1"

// outcomes returns the verdicts as "property outcome".
func outcomes(s *merged.Shown) (all []string) {
	for _, v := range s.Report.Verdicts {
		all = append(all, v.Property+" "+v.Outcome)
	}
	return all
}

// All traces together make one run, which the audit judges. The order of the files has no effect.
func TestShow(t *testing.T) {
	all := append(files(t, group, "1", "2", "3", "4"), files(t, stream, "1", "2", "3", "4")...)
	for slot, decided := range map[uint64]int{0: 3, 1: 3, 2: 3} {
		s, err := show(t, all, "agree/eig/1/1", slot)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"agreement held", "validity held", "termination held", "integrity held"}
		if got := outcomes(s); !slices.Equal(got, want) || len(s.Report.Decisions) != decided || s.Slot != max(slot, 1) || s.First != 1 ||
			s.Last != 2 || s.Unjudged != "" || len(s.Missing) != 0 {
			t.Errorf("slot %d: got %v, %v, slot %d of %d to %d, %q", slot, got, s.Report.Decisions, s.Slot, s.First, s.Last, s.Unjudged)
		}
		slices.Reverse(all)
		again, err := show(t, all, "agree/eig/1/1", slot)
		if err != nil || again.Log.Hash() != s.Log.Hash() {
			t.Errorf("slot %d: another order of the files makes another run, %v", slot, err)
		}
	}
	s, err := show(t, all, "group/order", 0)
	if err != nil || !slices.Contains(outcomes(s), "total order held") || s.Notes[0] != "as the others heard it" {
		t.Errorf("%v: %v", err, outcomes(s))
	}
}

// A trace that is missing breaks no promise, and what only it could show is not applicable.
func TestMissingTraces(t *testing.T) {
	s, err := show(t, files(t, group, "1", "3", "4"), "", 0)
	if err != nil || s.Report.Violated() || !slices.Contains(s.Missing, "there is no trace of node2") || s.Notes[1] != "without a trace" {
		t.Errorf("%v: %v, missing %q", err, outcomes(s), s.Missing)
	}
	s, err = show(t, files(t, stream, "2"), "", 0)
	if err != nil || s.Report.Violated() || !slices.Contains(outcomes(s), "agreement not applicable") {
		t.Errorf("%v: %v", err, outcomes(s))
	}
}

// A decision that differs violates agreement, although all traces are complete.
func TestViolation(t *testing.T) {
	all := files(t, stream, "1", "2", "3", "4")
	log := all[2].Log
	changed := false
	for i := range log.Events {
		if e := &log.Events[i]; e.Op == trace.Deliver && e.Msg.Kind == parley.Decide && e.Msg.Seq == 2 {
			e.Msg.Body, changed = []byte("another value"), true
		}
	}
	s, err := show(t, all, "", 2)
	if err != nil || !changed || !s.Report.Violated() || !slices.Contains(outcomes(s), "agreement VIOLATED") {
		t.Fatalf("%v, changed: %t: %v", err, changed, outcomes(s))
	}
	if s, err = show(t, all, "", 1); err != nil || s.Report.Violated() {
		t.Errorf("slot 1: %v: %v", err, outcomes(s))
	}
}

// An agreement that was in flight when the traces ended has no verdict.
func TestUnjudged(t *testing.T) {
	all := files(t, stream, "1", "2", "3", "4")
	for i := range all {
		for k, e := range all[i].Log.Events {
			if e.Op == trace.Deliver && e.Msg.Kind == parley.Decide && e.Msg.Seq == 2 {
				cut := &trace.Log{Keep: true, Broken: true}
				for _, e := range all[i].Log.Events[:k] {
					cut.Add(e)
				}
				all[i].Log = cut
				break
			}
		}
	}
	s, err := show(t, all, "", 2)
	if err != nil || len(s.Report.Verdicts) != 0 || !strings.Contains(s.Heading(), "not judged: ") {
		t.Errorf("%v: %v", err, outcomes(s))
	}
}

// Traces that do not belong together are refused, with their files and lines.
func TestUnrelatedTraces(t *testing.T) {
	of := func(change func(*trace.Trace)) []trace.Trace {
		all := files(t, group, "1", "2")
		node := *all[1].Header.Node
		all[1].Header.Node = &node
		change(&all[1])
		return all
	}
	for name, c := range map[string]struct {
		traces []trace.Trace
		says   string
	}{
		"of two clusters": {of(func(t *trace.Trace) { t.Header.Node.Cluster = "other" }),
			`group-order.node1.jsonl:1 and group-order.node2.jsonl:1: traces of group/order of cluster "audit" and of group/order of cluster "other"`},
		"twice": {append(files(t, group, "1", "2"), files(t, group, "2")...),
			"group-order.node2.jsonl:1 and group-order.node2.jsonl:1 are of the same life of node2"},
		"of two configurations": {of(func(t *trace.Trace) { t.Header.M = 0 }),
			"group-order.node1.jsonl:1 and group-order.node2.jsonl:1: traces of different configurations"},
		"of a run":        {of(func(t *trace.Trace) { t.Header.Node = nil }), "group-order.node2.jsonl:1: it is not the trace of a node"},
		"of a merge":      {of(func(t *trace.Trace) { t.Header.Node.Self = trace.Merged }), "group-order.node2.jsonl:1: it is not the trace of a node"},
		"of two machines": {append(files(t, group, "1"), files(t, stream, "1")...), "name one of agree/eig/1/1, group/order"},
	} {
		if _, err := show(t, c.traces, "", 0); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %s", name, err, c.says)
		}
	}
	if _, err := show(t, files(t, stream, "2", "3"), "", 9); err == nil || !strings.Contains(err.Error(), "no slot 9") {
		t.Errorf("slot 9: %v", err)
	}
	if _, err := show(t, files(t, group, "2", "3"), "", 1); err == nil || !strings.Contains(err.Error(), "not a stream") {
		t.Errorf("a slot of a group: %v", err)
	}
}
