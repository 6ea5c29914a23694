package eig_test

import (
	"fmt"
	"testing"

	"parley/agreement/eig"
	"parley/agreement/problem"
	"parley/explore"
	"parley/lockstep"
	"parley/parleytest"
)

// TestExplored explores every adversary of one faulty process over 0, 1 and silence, for each faulty
// process and each value of a correct source. Nothing breaks for n >= 4. With n = 3 validity does: the
// source says 1, the faulty process 0 or nothing, and the tie takes the default, at either of the two
// correct lieutenants.
func TestExplored(t *testing.T) {
	var systems []parleytest.System
	for _, x := range []struct {
		n                  int
		runs, states, ends uint64
		broken             map[string]int
	}{
		{3, 21, 39, 21, map[string]int{problem.Validity: 4}}, // 2*2*3 + 3^2 adversaries
		{4, 81, 121, 81, nil},                                // 3*2*3^2 + 3^3
		{5, 297, 395, 297, nil},                              // 4*2*3^3 + 3^4
	} {
		systems = append(systems, parleytest.System{
			Name: fmt.Sprintf("n=%d", x.n),
			Options: explore.Options{
				Protocol: eig.New(config(x.n, 1), lockstep.Simulated), Step: explore.Rounds, Beyond: true,
				Roots: parleytest.Liars(x.n, 1, parleytest.Proposals("0", "1")),
			},
			Runs: x.runs, States: x.states, Ends: x.ends, Broken: x.broken,
		})
	}
	parleytest.Explored(t, systems)
}
