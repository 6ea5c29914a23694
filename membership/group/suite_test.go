package group_test

import (
	"testing"

	"parley"
	"parley/broadcast/timestamp"
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

// What is said of links and of how long to watch: without FIFO links nothing holds, and
// signs of life never end.
func TestRelies(t *testing.T) {
	for _, p := range []parley.Protocol{
		group.New(group.Config{N: 3}), timestamp.New(timestamp.Config{Config: group.Config{N: 3}}),
	} {
		if !p.Relies.FIFO || p.Span == 0 {
			t.Errorf("%s relies on %+v, and ends after %d", p.Name, p.Relies, p.Span)
		}
	}
}

func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, group.New(group.Config{N: 3}), parleytest.Options{Sim: sim.Options{FIFO: true}})
}
