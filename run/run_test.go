package run_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"testing"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/problem"
	"parley/broadcast/diffusion"
	"parley/faulty"
	"parley/lockstep"
	"parley/run"
	"parley/sim"
)

// upTo returns the seeds from 1 to last.
func upTo(last uint64) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for seed := uint64(1); seed <= last && yield(seed); seed++ {
		}
	}
}

// boastful is information gathering among three processes of which one may lie, with a promise that it cannot
// keep.
func boastful() run.Spec {
	p := eig.New(problem.Instance{N: 3, M: 1, Default: []byte("0")}, lockstep.Simulated)
	p.Promises = func(parley.RunConditions) []parley.Promise {
		return []parley.Promise{{Property: problem.Validity, Holds: true, Because: "so it says"}}
	}
	return run.Spec{
		Protocol: p, Faulty: map[parley.ID]faulty.Behavior{2: faulty.Random},
		Values: map[parley.ID][]byte{0: []byte("1")},
		Plan:   run.Plan{Random: run.Random{Suspicions: 2, Pauses: 1}},
	}
}

// The same spec makes the same run; another seed makes another run.
func TestSimulate(t *testing.T) {
	p := eig.New(problem.Instance{N: 4, M: 1}, lockstep.Simulated)
	s := run.Spec{
		Protocol: p, Seed: 7, Faulty: map[parley.ID]faulty.Behavior{3: faulty.Random},
		Values: map[parley.ID][]byte{0: []byte("1")},
	}
	a, err := s.Simulate()
	if err != nil {
		t.Fatal(err)
	}
	b, err := s.Simulate()
	if err != nil {
		t.Fatal(err)
	}
	if a.Log.Hash() != b.Log.Hash() {
		t.Error("the same spec made two different runs")
	}
	for _, v := range a.Judge() {
		if v.Outcome() != parley.Held {
			t.Errorf("%s: %s", v.Property.Name, v.Outcome())
		}
	}
	for id, value := range problem.Decisions(a.History) {
		if id != 3 && string(value) != "1" {
			t.Errorf("process %d decides %q, want 1", id, value)
		}
	}
	if in, _, _ := a.Tree(1).Node(a.Tree(1).Root()); string(in) != "1" {
		t.Errorf("the root of process 1's tree holds %q, want 1", in)
	}
	s.Seed = 8
	if c, err := s.Simulate(); err != nil || c.Log.Hash() == a.Log.Hash() {
		t.Errorf("seed 8 made the run of seed 7, %v", err)
	}
}

// An invalid spec is refused by every function that would run it.
func TestCheck(t *testing.T) {
	p := diffusion.New(diffusion.Config{N: 3})
	for _, c := range []struct {
		faulty map[parley.ID]faulty.Behavior
		want   string
	}{
		{map[parley.ID]faulty.Behavior{3: faulty.Silent}, "faulty process 3: there are 3, from 0"},
		{map[parley.ID]faulty.Behavior{1: faulty.Crash(1, 0)}, "process 1: crash@r1"},
		{map[parley.ID]faulty.Behavior{0: faulty.Silent, 1: faulty.Silent, 2: faulty.Silent}, "all 3 processes are faulty"},
	} {
		s := run.Spec{Protocol: p, Faulty: c.faulty}
		if _, err := s.Simulate(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
		if _, err := run.Sweep(t.Context(), s, upTo(1), run.SweepOptions{}); err == nil {
			t.Errorf("%s: a sweep took it", c.want)
		}
	}
}

// What a sweep finds does not depend on the number of workers, and its counts add up.
func TestSweep(t *testing.T) {
	var reports []run.SweepReport
	for _, workers := range []int{1, 3} {
		made := make(chan struct{}, 1000)
		r, err := run.Sweep(t.Context(), boastful(), upTo(300), run.SweepOptions{
			Workers: workers, All: true, OnRun: func() { made <- struct{}{} },
		})
		if err != nil || len(made) != 300 {
			t.Fatalf("%d workers: %d runs, %v, want 300", workers, len(made), err)
		}
		reports = append(reports, r)
	}
	if !reflect.DeepEqual(reports[0], reports[1]) {
		t.Errorf("one worker: %+v\nthree workers: %+v", reports[0], reports[1])
	}
	r := reports[0]
	valid := r.Properties[problem.Validity]
	if r.Runs != 300 || valid.Held+valid.Broken+valid.NotPromisedHeld+valid.NotPromisedBroken != 300 || valid.Broken == 0 || int(valid.Broken) != len(r.Breaches) {
		t.Errorf("%d runs, validity %+v, %d breaches", r.Runs, valid, len(r.Breaches))
	}
	first, err := run.Sweep(t.Context(), boastful(), upTo(300), run.SweepOptions{Workers: 1})
	if err != nil || len(first.Breaches) == 0 || first.Breaches[0] != r.Breaches[0] || first.Runs == 300 {
		t.Errorf("without All: %d runs, %v", first.Runs, first.Breaches)
	}
}

// The smallest run breaks the same promise with nothing but the liar.
func TestMinimizeSpec(t *testing.T) {
	s := boastful()
	r, err := run.Sweep(t.Context(), s, upTo(300), run.SweepOptions{})
	if err != nil || len(r.Breaches) == 0 {
		t.Fatalf("%v, %d breaches", err, len(r.Breaches))
	}
	s.Seed = r.Breaches[0].Seed
	least, ok := run.Minimize(t.Context(), s, problem.Validity)
	if !ok || least.Plan.Faults() != 0 || len(least.Faulty) != 1 {
		t.Errorf("%v: %d faults beside %d liars are left", ok, least.Plan.Faults(), len(least.Faulty))
	}
	if trial := least.Try(new(sim.Sim)); trial.Breaks(problem.Validity) == "" {
		t.Error("the least run breaks nothing")
	}
	if _, ok := run.Minimize(t.Context(), s, problem.Agreement); ok {
		t.Error("a run that breaks no such promise was made smaller")
	}
}

// panics is a machine that panics at any request.
type panics struct{ parley.Base }

func (panics) Request(*parley.Step, parley.Msg) { panic("no") }
func (panics) State(*parley.Vars)               {}

// A machine that panics ends its run but not the sweep. A sweep whose context ends counts the completed runs.
func TestSweepContinues(t *testing.T) {
	p := diffusion.New(diffusion.Config{N: 2})
	p.New = func(parley.ID) parley.Machine { return panics{} }
	s := run.Spec{Protocol: p, Plan: run.Plan{Workload: run.Workload{Broadcasts: 1}}}
	r, err := run.Sweep(t.Context(), s, upTo(5), run.SweepOptions{All: true})
	if err != nil || r.Runs != 5 || len(r.Breaches) != 5 || r.Breaches[4] != (run.Breach{Seed: 5, Property: run.Sound, How: "no"}) {
		t.Errorf("%d runs, %v, %+v", r.Runs, err, r.Breaches)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	r, err = run.Sweep(ctx, s, upTo(1<<40), run.SweepOptions{Workers: 1, All: true, OnRun: func() { cancel(errors.New("enough")) }})
	if err != nil || r.Runs != 1 {
		t.Errorf("after the first run the context ended: got %d runs, %v", r.Runs, err)
	}
}

func ExampleSweep() {
	spec := run.Spec{
		Protocol: eig.New(problem.Instance{N: 4, M: 1, Default: []byte("0")}, lockstep.Simulated),
		Faulty:   map[parley.ID]faulty.Behavior{2: faulty.Random},
		Values:   map[parley.ID][]byte{0: []byte("1")},
	}
	report, err := run.Sweep(context.Background(), spec, upTo(1000), run.SweepOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Runs, "runs, agreement held in", report.Properties[problem.Agreement].Held)
	// Output: 1000 runs, agreement held in 1000
}
