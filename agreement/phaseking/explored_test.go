package phaseking_test

import (
	"bytes"
	"fmt"
	"testing"

	"parley/agreement/phaseking"
	"parley/agreement/problem"
	"parley/explore"
	"parley/lockstep"
	"parley/parleytest"
)

// vectors returns the initial values of n processes, 0 or 1. The values of processes 2 and up,
// which are never kings if m is 1, are sorted: these processes differ only by name.
func vectors(n int) []string {
	out := []string{""}
	for i := range n {
		var longer []string
		for _, v := range out {
			for _, letter := range "01" {
				if i <= 2 || byte(letter) >= v[i-1] {
					longer = append(longer, v+string(letter))
				}
			}
		}
		out = longer
	}
	return out
}

// TestExplored explores every adversary of one faulty process in any position, which sends any of the
// letters or nothing to each process in each round. Nothing breaks within the bound, whatever the
// initial values. With one process fewer agreement breaks, and with two rounds validity too.
func TestExplored(t *testing.T) {
	type broken = map[string]int
	var systems []parleytest.System
	for _, x := range []struct {
		form         phaseking.Form
		letters      string
		begin        []string
		only         []string // properties
		runs         uint64
		states, ends uint64
		broken       broken
	}{
		{phaseking.ThreeRound, "01", vectors(4), nil, 293_577_939, 1031, 38, broken{}},
		{phaseking.ThreeRound, "012", []string{"0121"}, nil, 5_212_306_688, 518, 7, broken{}},
		{phaseking.TwoRound, "01", vectors(5), nil, 8_739_252, 1316, 72, broken{}},
		{phaseking.ThreeRound, "01", vectors(3), nil, 498_636, 504, 36, broken{problem.Agreement: 24}},
		{phaseking.TwoRound, "01", vectors(4), []string{problem.Agreement}, 247_860, 742, 98, broken{problem.Agreement: 96}},
		{phaseking.TwoRound, "01", vectors(4), []string{problem.Validity}, 247_860, 742, 98, broken{problem.Validity: 32}},
	} {
		n := len(x.begin[0])
		c := config(x.form, n, 1)
		c.Alphabet = bytes.Split([]byte(x.letters), nil)
		systems = append(systems, parleytest.System{
			Name: fmt.Sprintf("%s n=%d values %s", x.form, n, x.letters),
			Options: explore.Options{
				Protocol: phaseking.New(c, lockstep.Simulated), Step: explore.Rounds, Beyond: true, Only: x.only,
				Roots: parleytest.Liars(n, 1, parleytest.Proposals(x.begin...)),
			},
			Runs: x.runs, States: x.states, Ends: x.ends, Broken: x.broken,
		})
	}
	parleytest.Explored(t, systems)
}
