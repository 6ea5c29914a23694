package bracha_test

import (
	"math/rand/v2"
	"testing"

	"parley"
	"parley/broadcast/bracha"
	"parley/broadcast/problem"
	"parley/parleytest"
	"parley/sim"
)

func TestSuite(t *testing.T) {
	for _, c := range []bracha.Config{{N: 4, M: 1}, {N: 7, M: 2}, {N: 5, M: 1, Window: 6}} {
		t.Run("", func(t *testing.T) { parleytest.Suite(t, bracha.New(c)) })
	}
}

// The failure-free cost of one broadcast: n-1 initial messages, and an echo and a ready from each process to
// each other.
func TestCost(t *testing.T) {
	for _, n := range []int{1, 2, 4, 7, 10} {
		c := bracha.Config{N: n, M: (n - 1) / 3}
		p := bracha.New(c)
		s := sim.Run(sim.Options{Protocol: p, Measure: true,
			Requests: []sim.Request{{At: parley.ID(n - 1), Msg: problem.Request([]byte("x"))}}})
		want := uint64(n - 1 + 2*n*(n-1))
		var got parley.Traffic
		for _, l := range s.Stats.Sent {
			got = got.Plus(l)
		}
		if got.Messages != want || got != p.Cost(n, c.M).Total() || len(s.History.Deliveries) != n {
			t.Errorf("n=%d: %+v sent, the theorem says %d", n, got, want)
		}
	}
}

func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, bracha.New(bracha.Config{N: 4, M: 1}), parleytest.Options{Inputs: func(r *rand.Rand) []sim.Request {
		return []sim.Request{{At: parley.ID(r.IntN(4)), Msg: problem.Request([]byte("x"))}}
	}})
}
