package dated_test

import (
	"testing"

	"parley"
	"parley/clock/convergence"
	"parley/clock/dated"
	"parley/parleytest"
	"parley/sim"
)

// suited returns a system for the suite: it ends, and its clocks drift, including the additional ones beyond
// the bound.
func suited(c convergence.Config) (parley.Protocol, parleytest.Options) {
	p := dated.New(dated.Config{Config: c})
	var o parleytest.Options
	for i := range 3 * c.M {
		o.Sim.Clocks = append(o.Sim.Clocks, sim.Clock{
			At: parley.ID(i), Offset: parley.Tick(50 * i), Drift: 100 - 200*int64(i%2),
		})
	}
	beyond := c
	beyond.N, beyond.Resyncs = 3*c.M, 20
	o.Beyond = []parleytest.Beyond{{Protocol: dated.New(dated.Config{Config: beyond}), Faulty: c.M}}
	return p, o
}

func TestSuite(t *testing.T) {
	for _, c := range []convergence.Config{
		{N: 4, M: 1, Resyncs: 4},
		{N: 7, M: 2, Resyncs: 3},
		{N: 4, M: 1, Resyncs: 4, Begin: convergence.Cold},
		{N: 4, M: 1, Resyncs: 4, Begin: convergence.Either},
	} {
		t.Run("", func(t *testing.T) {
			p, o := suited(c)
			o.Seeds = 1200 / (c.N * c.N) // runs of seven processes take long
			parleytest.Suite(t, p, o)
		})
	}
}

func FuzzReceive(f *testing.F) {
	p, o := suited(convergence.Config{N: 7, M: 2, Resyncs: 4, Begin: convergence.Cold})
	parleytest.Fuzz(f, p, o)
}
