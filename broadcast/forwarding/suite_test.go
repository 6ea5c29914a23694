package forwarding_test

import (
	"math/rand/v2"
	"testing"

	"parley"
	"parley/broadcast/forwarding"
	"parley/broadcast/problem"
	"parley/membership/detector"
	"parley/parleytest"
	"parley/sim"
	"parley/stack"
)

// detected puts the protocol on top of a detector that sends enough heartbeats for a run of the suite.
func detected(c forwarding.Config) parley.Protocol {
	p := stack.New(detector.New(detector.Config{N: c.N, Beats: 60}), forwarding.New(c))
	p.M = c.N - 1
	return p
}

func TestSuite(t *testing.T) {
	for _, c := range []forwarding.Config{
		{N: 4}, {N: 5, Fanout: 1, Window: 1}, {N: 4, Root: 2, Tree: [][]parley.ID{2: {1, 3}, 3: {0}}, Notice: true},
	} {
		t.Run("", func(t *testing.T) {
			parleytest.Suite(t, detected(c), parleytest.Options{Seeds: 60})
		})
	}
}

// The failure-free cost of one broadcast: n-1 messages and n-1 acknowledgements.
func TestCost(t *testing.T) {
	for _, c := range []forwarding.Config{{N: 2}, {N: 7}, {N: 6, Fanout: 1}, {N: 6, Fanout: 5}, {N: 7, Notice: true}} {
		for root := range parley.ID(c.N) {
			p := forwarding.New(c)
			s := sim.Run(sim.Options{Protocol: p, Seed: uint64(root), Measure: true,
				Requests: []sim.Request{{At: root, Msg: problem.Request([]byte("x"))}}})
			want := uint64(2 * (c.N - 1))
			if c.Notice {
				want = uint64(3 * (c.N - 1))
			}
			if got := s.Stats.Sent[0]; got != p.Cost(c.N, 0).Total() || got.Messages != want {
				t.Errorf("%+v, root %d: %+v sent, the theorem says %d", c, root, got, want)
			}
		}
	}
}

func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, forwarding.New(forwarding.Config{N: 5}), parleytest.Options{Inputs: func(r *rand.Rand) []sim.Request {
		return []sim.Request{{At: parley.ID(r.IntN(5)), Msg: problem.Request([]byte("x"))}}
	}})
}
