package interactive_test

import (
	"testing"

	"parley/agreement/interactive"
	"parley/lockstep"
	"parley/parleytest"
)

func TestSuite(t *testing.T) {
	for _, name := range interactive.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := interactive.New(over(t, name, instance(4, 1)), lockstep.Simulated)
			if name == "sm" {
				p.Rename = nil // leaves out signatures, so what is renamed twice is not what it was
			}
			parleytest.Suite(t, p, parleytest.Options{Seeds: 100})
		})
	}
	t.Run("early", func(t *testing.T) {
		t.Parallel()
		early := lockstep.Simulated
		early.Early = true
		parleytest.Suite(t, interactive.New(over(t, "eig", instance(4, 1)), early), parleytest.Options{Seeds: 100})
	})
}

func FuzzReceive(f *testing.F) {
	parleytest.Fuzz(f, interactive.New(over(f, "eig", instance(4, 1)), lockstep.Simulated))
}
