package forwarding_test

import (
	"testing"

	"parley/broadcast/forwarding"
	"parley/explore"
	"parley/parleytest"
)

// TestExplored searches every order of arrivals and of suspicions, true and false ones, with crashes after
// each effect of each step. Suspicions may overtake messages in transit. Nothing breaks, although nothing is
// promised under false suspicions.
func TestExplored(t *testing.T) {
	type config = forwarding.Config
	chain, star := config{N: 3, Fanout: 1, Window: 1}, config{N: 3, Window: 1, Notice: true}
	system := func(c config, crashes, wrong int, casts ...string) explore.Options {
		m := explore.Model{Crashes: crashes, FalseSuspicions: wrong, Detect: true, Overtaking: true}
		return explore.Options{Protocol: forwarding.New(c), Roots: parleytest.Casts(casts...), Model: m, Beyond: true}
	}
	parleytest.Explored(t, []parleytest.System{
		{Name: "chain", Options: system(chain, 2, 0, "0a"), States: 299, Ends: 27},
		{Name: "chain, one waits", Options: system(chain, 1, 0, "0a", "0b"), States: 375, Ends: 15},
		{Name: "chain, two senders", Options: system(chain, 1, 0, "0a", "2b"), States: 2698, Ends: 53},
		{Name: "chain, wrong suspicion", Options: system(chain, 1, 1, "0a"), States: 670, Ends: 42},
		{Name: "chain, wrong suspicions", Options: system(chain, 0, 3, "0a"), States: 517, Ends: 42},
		{Name: "chain, two senders, wrong suspicion", Options: system(chain, 0, 1, "0a", "2b"), States: 1044, Ends: 30},
		{Name: "notice", Options: system(star, 1, 0, "0a", "0b"), States: 3537, Ends: 20},
		{Name: "notice, wrong suspicion", Options: system(star, 1, 1, "0a"), States: 1873, Ends: 54},
		{Name: "tree", Options: system(config{N: 3}, 2, 0, "0a", "1b"), States: 15240, Ends: 231},
		{Name: "four, chain", Options: system(config{N: 4, Fanout: 1}, 2, 0, "0a"), States: 3660, Ends: 56},
		{Name: "four, tree", Options: system(config{N: 4}, 2, 0, "0a"), States: 7308, Ends: 44},
	})
}
