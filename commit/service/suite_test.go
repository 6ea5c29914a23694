package service

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"parley"
	"parley/parleytest"
	"parley/sim"
)

// inputs requests transactions at the first two processes, some under the same name.
func inputs(n int) func(r *rand.Rand) []sim.Request {
	return func(r *rand.Rand) (out []sim.Request) {
		for range 1 + r.IntN(4) {
			votes := make([]byte, n)
			for i := range votes {
				votes[i] = "yyyyyyyyn-"[r.IntN(10)]
			}
			body := fmt.Sprintf("%c %s", 'a'+r.IntN(3), votes)
			out = append(out, sim.Request{At: parley.ID(r.IntN(2)), When: parley.Tick(r.IntN(20_000)),
				Msg: parley.Msg{Kind: parley.Propose, Body: []byte(body)}})
		}
		return out
	}
}

func TestSuite(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{{N: 4}, {N: 3}, {N: 5, Majority: true}, {N: 3, Majority: true}} {
		t.Run(fmt.Sprintf("%d, majority %t", c.N, c.Majority), func(t *testing.T) {
			p := Tower(c, parley.SetOf(0, 1))
			parleytest.Suite(t, p, parleytest.Options{
				Inputs: inputs(c.N), Recovers: true, Seeds: 200, Sim: sim.Options{FIFO: true},
				LogKeepsMore: "no record says that a transaction is over: its coordinator does, when it is asked",
			})
		})
	}
}
