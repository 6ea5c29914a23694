package main

import (
	"slices"
	"testing"

	"parley/faulty"
	"parley/sim"
	"parley/trace"
)

// Faulty processes of a cell really are faulty: for each protocol and behavior, some run differs from the one in
// which the same processes are honest.
func TestLiarsLie(t *testing.T) {
	all := rows()
	for r := range all {
		for _, how := range slices.Concat(lies, omits) {
			if !differs(&all[r], how) {
				t.Errorf("%s: who is %s does what an honest process does", all[r].protocol.Name, how.Name)
			}
		}
	}
}

// differs reports whether a behavior changes the run for some seed.
func differs(r *row, how faulty.Behavior) bool {
	col := column{liars: lying, hows: []faulty.Behavior{how}}
	for seed := range uint64(40) {
		hash := func(b faulty.Behavior) string {
			trial := newTrial(r, &col, seed)
			for id := range trial.spec.Faulty {
				trial.spec.Faulty[id] = b
			}
			opt := trial.spec.Options()
			opt.Log = new(trace.Log)
			sim.Run(opt)
			return opt.Log.Hash()
		}
		if hash(how) != hash(faulty.Honest) {
			return true
		}
	}
	return false
}
