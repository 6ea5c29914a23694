package explore_test

import (
	"errors"
	"fmt"
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
				a.Effects, b.Effects = append([]parley.Effect{}, a.Effects...), append([]parley.Effect{}, b.Effects...)
				return reflect.DeepEqual(a, b)
			}
			g := explore.Guide{
				Begin: func(runs []explore.Run) (int, error) {
					for i, r := range runs {
						if n := len(r.Steps); n <= len(steps) && slices.EqualFunc(r.Steps, steps[:n], same) {
							steps = steps[n:]
							return i, nil
						}
					}
					return 0, errors.New("the run begins in no initial state")
				},
				Next: func(f explore.Fork) (int, error) {
					if len(steps) == 0 {
						return -1, nil
					}
					for i := range f.Len() {
						if same(f.Step(i), steps[0]) {
							steps = steps[1:]
							return i, nil
						}
					}
					return 0, fmt.Errorf("%+v is not among %d transitions", steps[0], f.Len())
				},
			}
			at, err := explore.Follow(t.Context(), o, 0, g)
			if err != nil || len(steps) > 0 || at.Run.Log(false).Hash() != report.Findings[0].Run.Log(false).Hash() {
				t.Errorf("%v: the run followed is not the run found; %d steps are left", err, len(steps))
			}
			wrong := errors.New("no")
			refuse := func(explore.Fork) (int, error) { return 0, wrong }
			begin := func([]explore.Run) (int, error) { return 0, nil }
			if _, err := explore.Follow(t.Context(), o, 0, explore.Guide{Begin: begin, Next: refuse}); !errors.Is(err, wrong) {
				t.Errorf("a guide that refuses: %v", err)
			}
		})
	}
}
