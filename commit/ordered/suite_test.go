package ordered_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"parley"
	"parley/broadcast/byzantine"
	"parley/commit/ordered"
	"parley/lockstep"
	"parley/parleytest"
	"parley/sim"
)

// order is the one that clusters use.
func order(n, m int) parley.Protocol {
	return byzantine.New(byzantine.Config{N: n, M: m, Final: true}, lockstep.Called)
}

// inputs ask for some transactions of any votes, and some names are asked for twice.
func inputs(n int) func(r *rand.Rand) []sim.Request {
	return func(r *rand.Rand) (out []sim.Request) {
		for range 1 + r.IntN(4) {
			votes := make([]byte, n)
			for id := range votes {
				votes[id] = "yyyyyn-"[r.IntN(7)]
			}
			out = append(out, sim.Request{
				At: parley.ID(r.IntN(n)), When: parley.Tick(r.Int64N(20_000)),
				Msg: parley.Msg{Kind: parley.Propose, Body: fmt.Appendf(nil, "%c %s", "abc"[r.IntN(3)], votes)},
			})
		}
		return out
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	for _, c := range []ordered.Config{{N: 4, M: 1, Delta: 4000}, {N: 7, M: 2, Delta: 6000}} {
		t.Run(fmt.Sprint(c.N), func(t *testing.T) {
			p := ordered.Tower(c, order)
			parleytest.Suite(t, p, parleytest.Options{
				Inputs: inputs(c.N), Recovers: true, Seeds: 1200 / (c.N * c.N),
				Beyond: []parleytest.Beyond{{Protocol: p, Faulty: c.M + 1}},
			})
		})
	}
}

func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, ordered.Tower(ordered.Config{N: 4, M: 1}, nil), parleytest.Options{Inputs: inputs(4)})
}
