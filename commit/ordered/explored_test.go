package ordered_test

import (
	"testing"

	"parley"
	"parley/commit/ordered"
	"parley/explore"
	"parley/parleytest"
)

// asked returns the root of runs with one request for a transaction.
func asked(at parley.ID, words string) []explore.Root {
	return []explore.Root{{Requests: []explore.Request{
		{At: at, Msg: parley.Msg{Kind: parley.Propose, Body: []byte(words)}},
	}}}
}

// Explore all runs of small systems, on an order that process 0 makes.
func TestExplored(t *testing.T) {
	three := ordered.GivenTower(ordered.Config{N: 3, M: 1})
	compacted := ordered.GivenTower(ordered.Config{N: 3, M: 1, Compact: 1})
	parleytest.Explored(t, []parleytest.System{{
		Name: "nothing fails", Options: explore.Options{
			Protocol: three, Roots: asked(0, "a yy-"), Model: explore.Model{InTime: true},
		}, States: 67, Ends: 1,
	}, {
		Name: "a crash", Options: explore.Options{
			Protocol: three, Roots: asked(1, "a -yy"), Model: explore.Model{InTime: true, Crashes: 1},
		}, States: 435, Ends: 18,
	}, {
		Name: "late timers", Options: explore.Options{
			Protocol: three, Roots: asked(0, "a yy-"), Model: explore.Model{Timeouts: 2},
		}, States: 8449,
	}, {
		Name: "a restart from a state", Options: explore.Options{
			Protocol: compacted, Roots: asked(1, "a -yy"), Model: explore.Model{InTime: true, Crashes: 1, Restarts: 1},
		}, States: 63445, Ends: 300,
	}})
}
