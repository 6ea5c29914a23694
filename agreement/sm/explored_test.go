package sm_test

import (
	"fmt"
	"testing"

	"parley/agreement/problem"
	"parley/agreement/sm"
	"parley/explore"
	"parley/lockstep"
	"parley/parleytest"
)

// TestExplored explores all lies with two values, for every set of faulty processes. A faulty
// source signs nothing, either value or both for each lieutenant. A faulty lieutenant relays what
// it received or does not. Two of them pool what they have. Agreement breaks if more than m
// processes are faulty.
func TestExplored(t *testing.T) {
	var systems []parleytest.System
	for _, x := range []struct {
		n, m, liars        int
		runs, states, ends uint64
		split              int // findings
	}{
		{3, 1, 1, 24, 33, 8, 0},    // 4^2 + 2*2*2 adversaries
		{4, 1, 1, 88, 87, 10, 0},   // 4^3 + 3*2*2^2
		{5, 1, 1, 320, 285, 12, 0}, // 4^4 + 4*2*2^3
		{4, 0, 1, 70, 77, 70, 12},  // 4^3 + 3*2: SM(0) tolerates no faults
		{4, 2, 1, 88, 157, 10, 0},  // m exceeds the number of faulty processes by one
		{4, 1, 2, 1752, 216, 153, 12},
		{4, 2, 2, 15576, 329, 66, 0},
	} {
		broken := make(map[string]int)
		if x.split > 0 {
			broken[problem.Agreement] = x.split
		}
		systems = append(systems, parleytest.System{
			Name: fmt.Sprintf("n=%d SM(%d) liars=%d", x.n, x.m, x.liars),
			Options: explore.Options{
				Protocol: sm.New(config(x.n, x.m), lockstep.Simulated), Step: explore.Rounds, Beyond: true,
				Roots: parleytest.Liars(x.n, x.liars, parleytest.Proposals("0", "1")),
			},
			Runs: x.runs, States: x.states, Ends: x.ends, Broken: broken,
		})
	}
	parleytest.Explored(t, systems)
}
