package exercises_test

import (
	"testing"

	"parley"
	"parley/exercises"
	"parley/exercises/model/fifo"
	"parley/exercises/model/om"
	"parley/exercises/model/priorities"
	"parley/exercises/model/twophase"
	"parley/parleytest"
)

// The model solutions pass the suite that every protocol passes.
func TestSuite(t *testing.T) {
	for _, p := range []parley.Protocol{
		exercises.OM(om.New), exercises.FIFO(fifo.New), exercises.Priorities(priorities.New), exercises.TwoPhase(twophase.New),
	} {
		t.Run(p.Name, func(t *testing.T) {
			parleytest.Suite(t, p, parleytest.Options{
				Seeds: 30, NeverBack: true, NothingBeyond: "the tests of the protocols of the catalog show it",
			})
		})
	}
}
