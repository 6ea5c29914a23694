package om_test

import (
	"fmt"
	"testing"

	"parley/agreement/om"
	"parley/agreement/problem"
	"parley/explore"
	"parley/lockstep"
	"parley/parleytest"
)

// TestExplored explores every adversary of one faulty process over 0, 1 and silence, for each faulty
// process and each value of a correct source. Nothing breaks for n >= 4. With n = 3 (slide
// "Impossibility Results") the only correct lieutenant of a correct source decides by its own value
// and the faulty process's. Two different votes tie and the default 0 decides: the source's value is
// lost exactly if it is 1 and the faulty process sends 0 or nothing, 2 runs for each faulty process.
func TestExplored(t *testing.T) {
	var systems []parleytest.System
	for _, x := range []struct {
		n                  int
		runs, states, ends uint64
		broken             map[string]int
	}{
		{3, 21, 25, 12, map[string]int{problem.Validity: 4}}, // 2*2*3 + 3^2 adversaries
		{4, 81, 53, 32, nil},   // 3*2*3^2 + 3^3
		{5, 297, 113, 80, nil}, // 4*2*3^3 + 3^4
	} {
		systems = append(systems, parleytest.System{
			Name: fmt.Sprintf("n=%d", x.n),
			Options: explore.Options{
				Protocol: om.New(om.Config{N: x.n, M: 1, Default: []byte("0")}, lockstep.Simulated),
				Step:     explore.Rounds, Beyond: true,
				Roots: parleytest.Liars(x.n, 1, parleytest.Proposals("0", "1")),
			},
			Runs: x.runs, States: x.states, Ends: x.ends, Broken: x.broken,
		})
	}
	parleytest.Explored(t, systems)
}
