package convergence_test

import (
	"testing"

	"parley"
	"parley/clock/convergence"
	"parley/parleytest"
	"parley/sim"
)

// suited returns a system for the suite: it ends, and its clocks drift, including the additional ones beyond
// the bound.
func suited(c convergence.Config) (parley.Protocol, parleytest.Options) {
	p := convergence.New(c)
	var o parleytest.Options
	for i := range 3 * c.M {
		o.Sim.Clocks = append(o.Sim.Clocks, sim.Clock{
			At: parley.ID(i), Offset: parley.Tick(50 * i), Drift: 100 - 200*int64(i%2),
		})
	}
	beyond := c
	beyond.N, beyond.Resyncs = 3*c.M, 20
	o.Beyond = []parleytest.Beyond{{Protocol: convergence.New(beyond), Faulty: c.M}}
	return p, o
}

func TestSuite(t *testing.T) {
	for _, c := range []convergence.Config{
		{N: 4, M: 1, Resyncs: 4},
		{N: 7, M: 2, Resyncs: 3, Form: convergence.Values},
		{N: 4, M: 1, Resyncs: 4, Begin: convergence.Cold},
	} {
		t.Run("", func(t *testing.T) {
			p, o := suited(c)
			parleytest.Suite(t, p, o)
		})
	}
}

func FuzzReceive(f *testing.F) {
	p, o := suited(convergence.Config{N: 7, M: 2, Resyncs: 4, Begin: convergence.Cold})
	parleytest.Fuzz(f, p, o)
}
