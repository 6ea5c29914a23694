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
			p, o := interactive.New(over(t, name, instance(4, 1)), lockstep.Simulated), parleytest.Options{Seeds: 100}
			if name == "sm" {
				p = interactive.New(over(t, name, instance(5, 2)), lockstep.Simulated)
				p.Rename = nil // it leaves out signatures, so renaming back does not restore the message
				// Two faulty, because the protocol cannot be made with fewer than m+2 processes.
				beyond := interactive.New(over(t, name, instance(5, 1)), lockstep.Simulated)
				o.Beyond = []parleytest.Beyond{{Protocol: beyond, Faulty: 2}}
			}
			parleytest.Suite(t, p, o)
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
