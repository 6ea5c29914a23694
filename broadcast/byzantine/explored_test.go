package byzantine_test

import (
	"testing"

	"parley"
	"parley/broadcast/byzantine"
	"parley/explore"
	"parley/faulty"
	"parley/parleytest"
)

// TestExplored explores every order of messages of four processes that order one or two requests, without time-outs.
// Links keep the order of messages.
func TestExplored(t *testing.T) {
	system := func(at parley.ID, silent parley.ID) explore.Options {
		roots := parleytest.Casts(string(rune('0'+at)) + "a")
		roots[0].Faulty = map[parley.ID]faulty.Behavior{silent: faulty.Silent}
		return explore.Options{
			Protocol: byzantine.New(byzantine.Config{N: 4, M: 1}), Model: explore.Model{FIFO: true}, Roots: roots,
		}
	}
	two := system(1, 3)
	two.Roots = parleytest.Casts("0a", "1b")
	two.Roots[0].Faulty = map[parley.ID]faulty.Behavior{3: faulty.Silent}
	all := system(0, 3)
	all.Roots[0].Faulty = nil
	parleytest.Explored(t, []parleytest.System{
		{Name: "the owner asks, one silent", Options: system(0, 3), States: 6593},
		{Name: "another asks, one silent", Options: system(1, 3), States: 7143},
		{Name: "two ask, one silent", Options: two, States: 464_239},
		{Name: "all correct", Options: all, States: 1_059_253},
	})
}
