package sm_test

import (
	"testing"

	"parley/agreement/sm"
	"parley/lockstep"
	"parley/parleytest"
)

// With one faulty process more than m something breaks; within n >= m+2 nothing does.
func TestSuite(t *testing.T) {
	for _, relay := range []sm.Relay{sm.RelayAll, sm.RelayTwo} {
		t.Run(relay.String(), func(t *testing.T) {
			c, beyond := config(6, 3, "0", "1", "2"), config(5, 1)
			c.Relay, beyond.Relay = relay, relay
			parleytest.Suite(t, sm.New(c, lockstep.Simulated), parleytest.Options{
				Seeds:  300, // a lie with all its signatures is rare: the first is accepted in run 62
				Beyond: []parleytest.Beyond{{Protocol: sm.New(beyond, lockstep.Simulated), Faulty: 2}},
			})
		})
	}
}

func FuzzReceive(f *testing.F) {
	c := config(4, 2)
	c.Relay = sm.RelayTwo
	parleytest.Fuzz(f, sm.New(c, lockstep.Simulated))
}
