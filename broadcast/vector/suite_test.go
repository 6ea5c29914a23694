package vector_test

import (
	"testing"

	"parley/broadcast/vector"
	"parley/membership/group"
	"parley/parleytest"
	"parley/sim"
)

var levels = []vector.Level{vector.Reliable, vector.Uniform, vector.FIFO, vector.Causal}

func TestSuite(t *testing.T) {
	for _, level := range levels {
		t.Run(level.String(), func(t *testing.T) {
			for _, n := range []int{3, 5} {
				c := vector.Config{Config: group.Config{N: n}, Level: level}
				parleytest.Suite(t, vector.New(c), parleytest.Options{
					Sim: sim.Options{FIFO: true, Until: 40_000}, Seeds: 25, Beyond: beyond(level),
				})
			}
		})
	}
}

// beyond is half of the members that crash: nobody is left to change the view, and what one
// of the others has received the rest is not told.
func beyond(level vector.Level) []parleytest.Beyond {
	return []parleytest.Beyond{{Protocol: vector.New(vector.Config{Config: group.Config{N: 4}, Level: level}), Faulty: 2}}
}

func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, vector.New(vector.Config{Config: group.Config{N: 3}}), parleytest.Options{
		Sim: sim.Options{FIFO: true},
	})
}
