package group_test

import (
	"testing"

	"parley/membership/group"
	"parley/parleytest"
	"parley/sim"
)

func TestSuite(t *testing.T) {
	for _, c := range []group.Config{{N: 3}, {N: 5, Return: true}} {
		t.Run("", func(t *testing.T) {
			parleytest.Suite(t, group.New(c), parleytest.Options{
				Sim: sim.Options{FIFO: true}, Seeds: 100,
				NothingBeyond: "what is promised of views holds of any number of crashes",
			})
		})
	}
}

func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, group.New(group.Config{N: 3}), parleytest.Options{Sim: sim.Options{FIFO: true}})
}
