package stream

import (
	"fmt"
	"slices"
	"testing"

	"parley"
	"parley/faulty"
	"parley/sim"
)

// The first request waits until the others are prepared: two rounds if one is silent, and at most
// some rounds if more are. Then it fails, because too few are up. Later requests do not wait.
func TestFirstQuestion(t *testing.T) {
	const first, second = 100, 200_000
	for silent, most := range map[int][2]parley.Tick{ // delays of the first and the second answer, in rounds
		0: {2, 1}, 1: {4, 2}, 2: {11, 2},
	} {
		p := simulatedIn(Key{EIG, 1, 0}, 4, 8, roomier)
		opt := sim.Options{Protocol: p, Until: 2 * second}
		opt.Requests = []sim.Request{question(0, first, 1, "one"), question(0, second, 2, "two")}
		for id := range parley.ID(silent) { // two are more than may be faulty
			opt.Crashes = append(opt.Crashes, sim.Crash{At: 3 - id, When: 1})
		}
		s := sim.Run(opt)
		told := make(map[uint64]parley.Tick)
		for _, d := range slices.Concat(s.History.Deliveries, s.History.Indications) {
			if d.At == 0 && (d.Msg.Kind == parley.Decide || d.Msg.Kind == Unanswered) {
				told[d.Msg.Value] = d.When
			}
		}
		if _, missing := outcomes(s); (silent == 2) != (len(missing) > 0) {
			t.Errorf("%d silent: no answer to %v", silent, missing)
		}
		for k, since := range []parley.Tick{first, second} {
			if took, ok := told[uint64(k+1)]; !ok || took-since > most[k]*roomier.Delta {
				t.Errorf("%d silent: question %d has its answer after %d: %v", silent, k+1, took-since, ok)
			}
		}
	}
}

// A value that a node proposes while it asks the others before the first agreement is in the
// vector, although one node is silent: the node proposes it in the slot that another begins.
func TestFirstProposals(t *testing.T) {
	for seed := range uint64(10) {
		opt := returning(Key{EIG, 1, Everyone}, 4, seed)
		opt.Faulty = map[parley.ID]faulty.Behavior{3: faulty.Silent}
		for id, when := range []parley.Tick{0, 4000, 0} {
			one := proposal(parley.ID(id), when, 1, "first", fmt.Sprint("of ", id))
			one.Msg.Seq = 6000 // to gather
			opt.Requests = append(opt.Requests, one)
		}
		for id, answers := range vectors(sim.Run(opt)) {
			if got := fmt.Sprintf("%q", answers[1]); got != `["of 0" "of 1" "of 2" ""]` {
				t.Errorf("seed %d: process %d is told %s", seed, id, got)
			}
		}
	}
}
