package atomic_test

import (
	"testing"

	"parley"
	"parley/broadcast/atomic"
	"parley/broadcast/problem"
	"parley/explore"
	"parley/membership/detector"
	"parley/membership/group"
	"parley/parleytest"
)

func cast(at parley.ID, text string, to ...parley.ID) explore.Request {
	return explore.Request{At: at, Msg: problem.RequestTo(parley.SetOf(to...), []byte(text))}
}

// TestExplored searches all runs of small systems, with crashes after each effect of each step. All promises
// hold in each. Uniform total order, which is not promised, breaks with two crashes.
func TestExplored(t *testing.T) {
	system := func(crashes int, casts ...explore.Request) explore.Options {
		p := atomic.New(atomic.Config{N: 3, Detector: true})
		p.Properties = append(p.Properties, problem.Of(problem.UniformTotalOrder)...)
		return explore.Options{
			Protocol: p, Model: explore.Model{FIFO: true, Crashes: crashes, Detect: true}, Beyond: true,
			Roots: []explore.Root{{Requests: casts}},
		}
	}
	a, b, c := cast(0, "a", 0, 1, 2), cast(1, "b", 0, 1, 2), cast(2, "c", 0, 1, 2)
	split := map[string]int{problem.UniformTotalOrder: 4}
	parleytest.Explored(t, []parleytest.System{
		{Name: "one crash", Options: system(1, a, b), States: 7948, Ends: 188},
		{Name: "two crashes", Options: system(2, a, cast(1, "b", 1, 2)), States: 5872, Ends: 455, Broken: split},
		{Name: "three messages", Options: system(0, a, b, c), States: 43758, Ends: 316},
	})
}

// TestExploredInViews searches all runs of three members, whose views change when one suspects another
// falsely. Nothing breaks, including uniform total order and prefix and view synchrony. No run ends, because
// the periodic timers of the members never stop.
func TestExploredInViews(t *testing.T) {
	never := detector.Config{Period: 10_000, Timeout: 1 << 30, Again: 1}
	system := func(m explore.Model, casts ...explore.Request) explore.Options {
		m.FIFO = true
		return explore.Options{
			Protocol: atomic.InViews(group.Config{N: 3, Detector: never}), Model: m,
			Roots: []explore.Root{{Requests: casts}},
		}
	}
	wrong, all := explore.Model{FalseSuspicions: 1}, cast(0, "a", 0, 1, 2)
	parleytest.Explored(t, []parleytest.System{
		{Name: "one message", Options: system(wrong, all), States: 15108},
		{Name: "sender outside", Options: system(wrong, cast(0, "a", 1, 2)), States: 9724},
		{Name: "chain", Options: system(wrong, cast(0, "a", 0, 1), cast(2, "b", 1, 2)), States: 69398},
		{Name: "overlapping sets", Options: system(explore.Model{}, all, cast(1, "b", 1, 2)), States: 3606},
		{Name: "loss", Options: system(explore.Model{Losses: 1}, all, cast(0, "b", 1, 2)), States: 10177},
	})
}
