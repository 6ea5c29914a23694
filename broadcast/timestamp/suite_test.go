package timestamp_test

import (
	"testing"

	"parley/broadcast/timestamp"
	"parley/membership/group"
	"parley/parleytest"
	"parley/sim"
)

func TestSuite(t *testing.T) {
	for _, n := range []int{3, 4, 5} {
		t.Run("", func(t *testing.T) {
			c := timestamp.Config{Config: group.Config{N: n}}
			parleytest.Suite(t, timestamp.New(c), parleytest.Options{
				Sim: sim.Options{FIFO: true, Until: 40_000}, Seeds: 60,
			})
		})
	}
}
