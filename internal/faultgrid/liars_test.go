package main

import (
	"slices"
	"testing"

	"parley/faulty"
	"parley/sim"
	"parley/trace"
)

// Whoever is faulty in a cell really is: for each protocol and behaviour there is a run
// that is another one if the same processes are honest.
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

// differs looks for a seed with which a behaviour shows.
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
