package timestamp_test

import (
	"fmt"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/broadcast/timestamp"
	"parley/membership/detector"
	"parley/membership/group"
	"parley/sim"
)

// doubting is a durable group of five that believes no single process, with the times of a cluster: a tick is
// a millisecond.
func doubting() timestamp.Config {
	return timestamp.Config{Config: group.Config{
		N: 5, Liars: 1, Durable: true, Return: true,
		Flush: 500, Wait: 1000, Stagger: 500, Admit: 1000, First: 500, Become: 3500,
		Detector: detector.Config{Period: 100, Timeout: 1000, Late: 250},
	}}
}

// changed is a run of five in which two are killed, then the other three, and then one of these restarts
// together with the two. It returns how long after that all three are in a view of the three, 0: never.
func changed(seed uint64, c timestamp.Config, away [2]parley.ID, one parley.ID) parley.Tick {
	back := parley.Tick(8000 + seed%7*37)
	opt := sim.Options{
		Protocol: timestamp.New(c), Seed: seed, FIFO: true, Until: back + 30_000,
		Delay: sim.Delay{Least: 1, Most: 1 + parley.Tick(seed%3)},
	}
	for id := range parley.ID(5) {
		for when := parley.Tick(100); when < opt.Until; when += 200 {
			opt.Requests = append(opt.Requests, sim.Request{
				At: id, When: when + parley.Tick(id), Msg: problem.Request(fmt.Appendf(nil, "%d.%d", id, when)),
			})
		}
		switch id {
		case away[0], away[1]:
			opt.Crashes = append(opt.Crashes, sim.Crash{At: id, When: 2000, Back: back - 2000 + parley.Tick(id)*10})
		case one:
			opt.Crashes = append(opt.Crashes, sim.Crash{At: id, When: 7000, Back: back - 7000 + parley.Tick(seed%5)*100})
		default:
			opt.Crashes = append(opt.Crashes, sim.Crash{At: id, When: 7000})
		}
	}
	three, in := parley.SetOf(away[0], away[1], one), parley.Set{}
	for _, e := range sim.Run(opt).History.Indications {
		if e.Msg.Kind != parley.View || e.When < back {
			continue
		}
		members, _, err := parley.ReadSet(e.Msg.Body, 5)
		if err == nil && members == three && in.Add(e.At) && in == three {
			return e.When - back
		}
	}
	return 0
}

// A majority that shares only one process with the last one continues within seconds, although the others do
// not at once believe what that process says about the last view.
func TestChangedMajority(t *testing.T) {
	var took []parley.Tick
	for seed := range uint64(4) {
		for a := range parley.ID(5) {
			for b := range a {
				for one := range parley.ID(5) {
					if one == a || one == b {
						continue
					}
					x := changed(seed, doubting(), [2]parley.ID{a, b}, one)
					if took = append(took, x); x == 0 || x > 3000 {
						t.Errorf("seed %d: %d and %d come back with %d: a view after %d ms", seed, a, b, one, x)
					}
				}
			}
		}
	}
	slices.Sort(took)
	t.Logf("%d runs: a view after %d to %d ms, half of them within %d", len(took), took[0], took[len(took)-1],
		took[len(took)/2])
}
