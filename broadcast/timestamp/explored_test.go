package timestamp_test

import (
	"testing"

	"parley/broadcast/timestamp"
	"parley/explore"
	"parley/membership/detector"
	"parley/membership/group"
	"parley/parleytest"
)

// TestExplored searches all runs of three members, whose views change when one suspects another, rightly or
// not. Nothing breaks. No run ends, because the periodic timers of the members never stop.
func TestExplored(t *testing.T) {
	system := func(window int, m explore.Model, casts ...string) explore.Options {
		m.FIFO = true
		never := detector.Config{Period: 10_000, Timeout: 1 << 30, Again: 1}
		c := timestamp.Config{Window: window, Config: group.Config{N: 3, Detector: never}}
		return explore.Options{Protocol: timestamp.New(c), Model: m, Roots: parleytest.Casts(casts...)}
	}
	crash, wrong := explore.Model{Crashes: 1, Detect: true}, explore.Model{FalseSuspicions: 1}
	lost := explore.Model{Losses: 1, FalseSuspicions: 1}
	parleytest.Explored(t, []parleytest.System{
		{Name: "crash", Options: system(0, crash, "0a", "1b"), States: 15254},
		{Name: "loss", Options: system(0, explore.Model{Losses: 1}, "0a", "0b"), States: 1277},
		{Name: "wrong suspicion", Options: system(0, wrong, "0a"), States: 8489},
		{Name: "wrong suspicion and loss", Options: system(0, lost, "0a"), States: 31514},
		{Name: "wrong suspicion, one waits", Options: system(1, wrong, "0a", "0b"), States: 93027},
	})
}
