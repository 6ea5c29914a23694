package ordered_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"parley"
	"parley/commit/ordered"
	"parley/parleytest"
	"parley/sim"
)

// inputs requests some transactions with random votes, some names twice.
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
	for _, c := range []ordered.Config{{N: 4, M: 1, Delta: 10_000}, {N: 7, M: 2, Delta: 10_000}} {
		t.Run(fmt.Sprint(c.N), func(t *testing.T) {
			p := ordered.Tower(c)
			parleytest.Suite(t, p, parleytest.Options{
				Inputs: inputs(c.N), Recovers: true, Seeds: 2400 / (c.N * c.N),
				Beyond: []parleytest.Beyond{{Protocol: p, Faulty: c.M + 1}},
			})
		})
	}
}

func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, ordered.GivenTower(ordered.Config{N: 4, M: 1}), parleytest.Options{Inputs: inputs(4)})
}

// If process 0 makes the order, a run in which it is faulty or was down for a time need not end. Every run
// without faults ends.
func TestOrderMakerIsDown(t *testing.T) {
	p := ordered.GivenTower(ordered.Config{N: 4, M: 1})
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		o := sim.Options{Protocol: p, Seed: seed, Until: p.Span, Requests: inputs(4)(r)}
		crash := sim.Crash{At: 0, When: 1 + parley.Tick(r.Int64N(8000))}
		switch seed % 3 {
		case 0:
			o.Crashes = []sim.Crash{crash}
		case 1:
			crash.Back = 1 + parley.Tick(r.Int64N(8000))
			o.Crashes = []sim.Crash{crash}
		}
		s := sim.Run(o)
		tested := 0
		for _, v := range parley.Judge(p, s.RunConditions(), &s.History) {
			if v.Violated() {
				t.Errorf("seed %d: %s: %v", seed, v.Property.Name, v.Broken)
			}
			if v.Property.Mode == parley.Eventually && v.Promise.Holds && v.Vacuous == "" {
				tested++
			}
		}
		if tested != map[bool]int{true: 2}[seed%3 == 2] {
			t.Errorf("seed %d: %d ends are asked for", seed, tested)
		}
	}
}
