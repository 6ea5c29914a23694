package explore_test

import (
	"reflect"
	"slices"
	"testing"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/problem"
	"parley/commit/twophase"
	"parley/explore"
	"parley/faulty"
	"parley/lockstep"
)

// A reader who takes transitions one by one can take every transition of a run that a search finds, and is then where
// the run ends.
func TestFollow(t *testing.T) {
	propose := func(at parley.ID, value string) explore.Request {
		return explore.Request{At: at, Msg: parley.Msg{Kind: parley.Propose, Body: []byte(value)}}
	}
	lies := explore.Options{
		Protocol: eig.New(problem.Instance{N: 3, M: 1, Default: []byte("0")}, lockstep.Simulated),
		Roots: []explore.Root{{
			Faulty: map[parley.ID]faulty.Behavior{1: faulty.Any}, Requests: []explore.Request{propose(0, "1")},
		}},
		Beyond: true, Workers: 1,
	}
	crashes := explore.Options{
		Protocol: twophase.New(twophase.Config{N: 3}), Workers: 1, Beyond: true, Only: []string{"non-blocking"},
		Model: explore.Model{Crashes: 1, InTime: true},
		Roots: []explore.Root{{Requests: []explore.Request{propose(0, "yes"), propose(1, "yes"), propose(2, "yes")}}},
	}
	for name, o := range map[string]explore.Options{"lies": lies, "crashes": crashes} {
		t.Run(name, func(t *testing.T) {
			report, err := explore.Search(t.Context(), o)
			if err != nil || report.Outcome != explore.Found {
				t.Fatal(report.Outcome, err)
			}
			steps := report.Findings[0].Run.Steps
			same := func(a, b explore.Step) bool {
				a.Time, b.Time = 0, 0
				return reflect.DeepEqual(a, b)
			}
			begin, numbers := -1, []int{}
			for b := 0; begin < 0; b++ { // the initial state of the run
				at, err := explore.Follow(t.Context(), o, 0, b, nil)
				if err != nil {
					t.Fatal(err)
				}
				if n := len(at.Run.Steps); n <= len(steps) && slices.EqualFunc(at.Run.Steps, steps[:n], same) {
					begin, steps = b, steps[n:]
				}
			}
			for i, step := range steps {
				at, err := explore.Follow(t.Context(), o, 0, begin, numbers)
				if err != nil {
					t.Fatal(err)
				}
				number := slices.IndexFunc(at.Next, func(s explore.Step) bool { return same(s, step) })
				if number < 0 {
					t.Fatalf("step %d: %+v is not among %d transitions", i, step, len(at.Next))
				}
				numbers = append(numbers, number)
			}
			at, err := explore.Follow(t.Context(), o, 0, begin, numbers)
			if err != nil || at.Run.Log(false).Hash() != report.Findings[0].Run.Log(false).Hash() {
				t.Errorf("%v: the run followed is not the run found", err)
			}
			if _, err := explore.Follow(t.Context(), o, 0, begin, []int{1 << 20}); err == nil {
				t.Error("a transition that is not there was taken")
			}
		})
	}
}
