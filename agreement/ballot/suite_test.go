package ballot_test

import (
	"testing"

	"parley/agreement/ballot"
	"parley/parleytest"
	"parley/sim"
)

func TestSuite(t *testing.T) {
	for _, c := range []ballot.Config{{N: 3, M: 1}, {N: 5, M: 2}, {N: 4, M: 1}} {
		t.Run("", func(t *testing.T) {
			parleytest.Suite(t, ballot.New(c), parleytest.Options{
				Alphabet: []string{"0", "1", "2"}, Recovers: true, Sim: sim.Options{Until: 1 << 20},
			})
		})
	}
}

func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, ballot.New(ballot.Config{N: 5, M: 2}), parleytest.Options{Sim: sim.Options{Until: 1 << 20}})
}
