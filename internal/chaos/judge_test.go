package main

import (
	"io"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/internal/chaos/judge"
)

// In a run that is given up, nodes may lag; that is no loss.
func TestGivenUpRunOnlyLags(t *testing.T) {
	for third, ended := range map[string]bool{"a": false, "abc": true} {
		var out strings.Builder
		o := judge.NewOrders("n1", "n2", "n3")
		for _, payload := range []string{"a", "b", "c"} {
			o.Cast(payload, 0, 0)
			o.Answered(payload, true, false)
		}
		for node, text := range []string{"abc", "abc", third} {
			o.Resume(node)
			for i, payload := range strings.Split(text, "") {
				o.Deliver(node, uint64(10+i), "n1", payload)
			}
		}
		o.Cast("taken", 1, 0)
		o.Answered("taken", true, false)
		r := &run{
			out: &out, toll: toll{events: []event{{fault: "stop"}}},
			fleet: fleet{load: &load{history: new(judge.History), orders: o}},
		}
		_ = r.judge(options{long: time.Second, bare: true, only: "stop"}, time.Second, ended, nil)
		lost, _, _ := strings.Cut(out.String(), "well within")
		if strings.Contains(lost, " NO\n") != ended { // only at the end it is certain that "taken" was delivered nowhere
			t.Errorf("it has ended: %t:\n%s", ended, lost)
		}
	}
}

// What a node has acknowledged is delivered by all, whatever happens to the node afterward.
func TestForgottenIsSeen(t *testing.T) {
	if err := forgotten(nil); err != nil {
		t.Error(err)
	}
	if forgotten([]judge.Cast{{Node: 1, At: time.Second}}) == nil {
		t.Error("a lost payload: nothing was found")
	}
}

// A run without faults, or without answers, fails.
func TestEnoughIsDemanded(t *testing.T) {
	o := options{long: time.Second, bare: true, only: "stop"}
	one := []event{{fault: "stop"}}
	for name, c := range map[string]struct { // order: the iterations are independent
		events   []event
		answered int
		want     bool
	}{
		"harm and answers": {one, 100, true}, "no harm": {nil, 100, false}, "no answer": {one, 0, false},
	} {
		if err := (&toll{events: c.events}).enough(o, o.long, c.answered, leastAnswered); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTimesAreChecked(t *testing.T) {
	for _, args := range []string{"-for 0s", "-for -5s", "-heal 0s", "-heal -1s"} {
		var complaint strings.Builder
		status := chaos(append(strings.Fields(args), "-bare"), io.Discard, &complaint)
		if flag, _, _ := strings.Cut(args, " "); status != 2 || !strings.Contains(complaint.String(), flag) {
			t.Errorf("%s: status %d, %s", args, status, complaint.String())
		}
	}
}

func TestGrowthIsSeen(t *testing.T) {
	var flat, grows []sample
	for i := range 60 {
		at, noise := time.Duration(i)*time.Minute, 5*math.Sin(float64(i*i))
		flat = append(flat, sample{at, [4]float64{100 + noise}})
		grows = append(grows, sample{at, [4]float64{100 + noise + float64(i)}})
	}
	if _, slope := line(flat, 0); math.Abs(slope) > 6 {
		t.Errorf("flat: %v in an hour", slope)
	}
	if begin, slope := line(grows, 0); math.Abs(slope-60) > 6 || math.Abs(begin-100) > 6 {
		t.Errorf("from %v, %v in an hour, not from 100, 60", begin, slope)
	}
}

// A node that lied may take twice as long to recover as others, and the others no longer than usual.
func TestSlowAfterALiar(t *testing.T) {
	for _, c := range []struct {
		fault        string
		well, others time.Duration
		slow         bool
	}{
		{"kill", 9, 0, false}, {"kill", 11, 0, true}, {liarName, 19, 9, false}, {liarName, 21, 9, true}, {liarName, 9, 11, true},
	} {
		r := toll{events: []event{{fault: c.fault, well: recoveryTimes{tables: c.well}, others: recoveryTimes{groups: c.others}}}}
		if err := r.slow(10); (err != nil) != c.slow {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// -only liar without -liar is refused, and the error names -liar. Without -only, the run has no liar.
func TestLiarIsNamed(t *testing.T) {
	if _, err := choose(options{only: liarName}); err == nil || !strings.Contains(err.Error(), "-liar") {
		t.Error(err)
	}
	for _, program := range []string{"", "bin/liar.test"} {
		kinds, err := choose(options{liar: program})
		if is := slices.ContainsFunc(kinds, fault.lies); err != nil || is != (program != "") {
			t.Errorf("-liar %q: %t, %v", program, is, err)
		}
	}
}
