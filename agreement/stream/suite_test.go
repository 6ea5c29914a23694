package stream

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"parley"
	"parley/parleytest"
	"parley/sim"
)

// inputs are requests for some agreements at the beginning, and for one when a process that was
// down has rejoined.
func (c Config) inputs(r *rand.Rand) (out []sim.Request) {
	const late = 150_000
	if !c.All() {
		for k := range uint64(1 + r.IntN(4)) {
			out = append(out, question(c.Source, parley.Tick(r.Int64N(6000)), k+1, fmt.Sprint(r.IntN(2))))
		}
		return append(out, question(c.Source, late, 9, "late"))
	}
	for k, name := range []string{"a", "b", "late"} {
		when := parley.Tick(r.Int64N(8000))
		for id := range parley.ID(c.N) {
			if name == "late" {
				when = late
			} else if r.IntN(5) == 0 {
				continue
			}
			one := proposal(id, when+parley.Tick(r.Int64N(3000)), uint64(k+1), name, fmt.Sprint(id, r.IntN(2)))
			one.Msg.Seq = uint64(r.Int64N(8000))
			out = append(out, one)
		}
	}
	return out
}

func TestSuite(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{
		{Key: Key{EIG, 1, 0}, N: 4, Window: 4},
		{Key: Key{OM, 1, 2}, N: 4, Window: 64},
		{Key: Key{SM, 1, 0}, N: 4, Window: 8},
		{Key: Key{SM, 1, 0}, N: 3, Window: 8},
		{Key: Key{PhaseKing, 1, 1}, N: 4, Window: 8},
		{Key: Key{EIG, 1, Everyone}, N: 4, Window: 8},
		{Key: Key{SM, 1, Everyone}, N: 4, Window: 8},
		{Key: Key{EIG, 2, 0}, N: 7, Window: 8},
		{Key: Key{Tetra, 1, 0}, N: 4, Window: 8},
		{Key: Key{Tetra, 1, 2}, N: 4, Window: 2},
		{Key: Key{Tetra, 2, 1}, N: 7, Window: 64},
	} {
		t.Run(fmt.Sprintf("%s of %d", c.Key, c.N), func(t *testing.T) {
			p := New(c, Simulated)
			o := parleytest.Options{
				Inputs: c.inputs, Recovers: true, Seeds: 600 / (c.N * c.N),
				Beyond: []parleytest.Beyond{{Protocol: p, Faulty: c.M + 1}},
			}
			parleytest.Suite(t, p, o)
		})
	}
}

func FuzzReceiveViews(f *testing.F) {
	c := Config{Key: Key{Tetra, 1, 0}, N: 4, Window: 4}
	parleytest.Fuzz(f, New(c, Simulated), parleytest.Options{Inputs: c.inputs})
}

func FuzzReceive(f *testing.F) {
	c := Config{Key: Key{EIG, 1, Everyone}, N: 4, Window: 8}
	parleytest.Fuzz(f, New(c, Simulated), parleytest.Options{Inputs: c.inputs})
}
