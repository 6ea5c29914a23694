package phaseking_test

import (
	"testing"

	"parley/agreement/phaseking"
	"parley/lockstep"
	"parley/parleytest"
)

// What every protocol is tested for, in both forms: beyond the bound with one
// fault too many, and with one process too few where random liars find the way.
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

// FuzzReceive gives a machine any messages at any time.
func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, phaseking.New(config(phaseking.ThreeRound, 4, 1), lockstep.Simulated))
}
