package phaseking_test

import (
	"testing"

	"parley/agreement/phaseking"
	"parley/lockstep"
	"parley/parleytest"
)

// The protocol suite passes in both forms. Beyond the bound it runs one fault too many,
// and one process too few where random lies find a violation.
func TestSuite(t *testing.T) {
	three := phaseking.New(config(phaseking.ThreeRound, 7, 2), lockstep.Simulated)
	t.Run("threeround", func(t *testing.T) {
		small := phaseking.New(config(phaseking.ThreeRound, 3, 1), lockstep.Simulated)
		beyond := []parleytest.Beyond{{Protocol: three, Faulty: 3}, {Protocol: small, Faulty: 1}}
		parleytest.Suite(t, three, parleytest.Options{Beyond: beyond})
	})
	two := phaseking.New(config(phaseking.TwoRound, 5, 1), lockstep.Simulated)
	t.Run("tworound", func(t *testing.T) {
		small := phaseking.New(config(phaseking.TwoRound, 4, 1), lockstep.Simulated)
		beyond := []parleytest.Beyond{{Protocol: two, Faulty: 2}, {Protocol: small, Faulty: 1}}
		parleytest.Suite(t, two, parleytest.Options{Beyond: beyond})
	})
}

// FuzzReceive passes a machine any messages at any time.
func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, phaseking.New(config(phaseking.ThreeRound, 4, 1), lockstep.Simulated))
}
