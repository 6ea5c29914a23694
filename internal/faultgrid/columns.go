package main

import (
	"cmp"
	"math/rand/v2"

	"parley"
	"parley/faulty"
	"parley/run"
)

// column is a kind of fault, or several kinds at a time.
type column struct {
	name string
	// add adds the faults to the plan of a run, most of them yet to be drawn; nil: none.
	add func(d draft)
	// liars is how many processes are in the coalition; nil: none.
	liars func(p parley.Protocol, seed uint64) int
	hows  []faulty.Behavior // how they behave, of which each draws one
	// shows are the kinds of fault that must come, each in some run of the cell, beside those
	// of liars.
	shows []string
}

// draft is the plan of a run of a row, to which faults are added.
type draft struct {
	*run.Plan
	row  *row
	seed uint64
}

// wrongClocks is the kind of fault of clocks that drift.
const wrongClocks = "clocks wrong"

// Drifts, in parts in a million: one that the slack of rounds covers, and one that
// nothing covers.
const (
	gentle = 1_000
	wild   = 300_000
)

var (
	lies  = []faulty.Behavior{faulty.Random, faulty.TwoFaced, faulty.Flip, faulty.Twin, faulty.Silent}
	omits = []faulty.Behavior{faulty.SendOmission, faulty.ReceiveOmission}
)

// within is how many faults the model allows, 1 if none: then one is too many.
func within(p parley.Protocol) int { return max(p.M, 1) }

// upto is a number of faults that the model allows, one for each seed.
func upto(p parley.Protocol, seed uint64) int { return 1 + int(seed%uint64(within(p))) }

// lying is as many liars as the model allows, and one where it allows none.
func lying(p parley.Protocol, _ uint64) int {
	if p.Faults < parley.SignedByzantineFaults {
		return 1
	}
	return within(p)
}

// beyond is one more, as long as that leaves two processes to compare.
func beyond(p parley.Protocol, seed uint64) int { return max(min(lying(p, seed)+1, p.N-2), 1) }

// columns are the kinds of fault, one at a time and then together.
func columns() []column { return append(alone(), together()...) }

// shown are the kinds of fault that must come.
func (c *column) shown() []string {
	if c.liars == nil {
		return c.shows
	}
	return append([]string{"messages of liars"}, c.shows...)
}

// befalls is the column of one kind of fault, which must come.
func befalls(name, kind string, add func(d draft)) column {
	return column{name: name, shows: []string{kind}, add: add}
}

// alone are the kinds of fault, one at a time.
func alone() []column {
	return []column{
		befalls("crash", "crashes", func(d draft) { d.Random.Crashes = upto(d.row.protocol, d.seed) }),
		befalls("crash>m", "crashes", func(d draft) { d.Random.Crashes = min(d.row.protocol.M+1, d.row.protocol.N-1) }),
		befalls("restart", "restarts", func(d draft) { d.Random.Restarts = 1 + int(d.seed%2) }),
		befalls("lost disk", "disks lost", func(d draft) { d.Random.LostDisks = 1 + int(d.seed%2) }),
		befalls("loss", "messages lost", func(d draft) { d.Loss = 0.2 }),
		befalls("double", "messages doubled", func(d draft) { d.FIFO, d.Twice = false, 0.3 }),
		befalls("reorder", "messages overtaken", reorder),
		befalls("cut", "messages cut off", func(d draft) { d.Random.Partitions = 1 + int(d.seed%2) }),
		befalls("one-way", "messages cut off", func(d draft) { d.Random.OneWay = 1 }),
		befalls("no link", "messages without a link", sparse),
		befalls("slow", "messages late", func(d draft) { d.Random.Slow = 1 + int(d.seed%2) }),
		befalls("pause", "pauses", func(d draft) { d.Random.Pauses = 1 + int(d.seed%2) }),
		befalls("suspect", "false suspicions", func(d draft) { d.Random.Suspicions = 1 + int(d.seed%3) }),
		befalls("drift", wrongClocks, func(d draft) { d.Random.Drift = int(d.relied().Drift) }),
		befalls("drift>", wrongClocks, func(d draft) { d.Random.Drift = wild }),
		{name: "omit", liars: upto, hows: omits},
		{name: "lie", liars: lying, hows: lies},
		{name: "lie>m", liars: beyond, hows: lies[:4]},
	}
}

// together are several kinds at once.
func together() []column {
	return []column{
		{name: "crash+suspect", shows: []string{"crashes", "false suspicions"}, add: func(d draft) {
			d.Random.Crashes, d.Random.Suspicions = upto(d.row.protocol, d.seed), 1+int(d.seed%2)
		}},
		{name: "rough", shows: []string{"crashes", "messages late", "pauses", "false suspicions"}, add: func(d draft) {
			d.Random.Crashes = upto(d.row.protocol, d.seed)
			d.Random.Slow, d.Random.Pauses, d.Random.Suspicions, d.Twice = 1, 1, 1, 0.2
		}},
		{name: "restart+slow", shows: []string{"restarts", "messages late"}, add: func(d draft) {
			d.Random.Restarts, d.Random.Slow = 1, 1
		}},
		{name: "lie+slow", liars: lying, hows: lies, shows: []string{"messages late"}, add: func(d draft) {
			d.Random.Slow = 1
		}},
		{name: "restart+cut", shows: []string{"restarts", "messages cut off", "messages lost"}, add: func(d draft) {
			d.Random.Restarts, d.Random.Partitions, d.Loss = 2, 2, 0.1
		}},
		{name: "disk+cut", shows: []string{"disks lost", "messages cut off", "messages lost"}, add: func(d draft) {
			d.Random.LostDisks, d.Random.Partitions, d.Loss = 2, 2, 0.1
		}},
		{name: "storm", shows: []string{
			"crashes", "restarts", "messages lost", "messages cut off", "messages late", "pauses", "false suspicions",
		}, add: func(d draft) {
			d.Random.Crashes, d.Random.Restarts, d.Random.Lossy, d.Random.Partitions = 1, 1, 1, 1
			d.Random.Slow, d.Random.Pauses, d.Random.Suspicions = 1, 1, 1
		}},
	}
}

// sparse leaves of all links those that join the processes in a row, in an order of the
// seed's, and half of the others.
func sparse(d draft) {
	n, dice := d.row.protocol.N, rand.New(rand.NewPCG(d.seed, 0x9a7))
	d.Graph = make([]parley.Set, n)
	order := dice.Perm(n)
	for i := range order {
		for k := range i {
			if a, b := order[i], order[k]; k == i-1 || dice.IntN(2) == 0 {
				d.Graph[a].Add(parley.ID(b))
				d.Graph[b].Add(parley.ID(a))
			}
		}
	}
}

// reorder lets messages overtake one another. Where they cannot within the delays
// that the protocol relies on, as in rounds, they take longer.
func reorder(d draft) {
	rely := d.relied()
	d.FIFO = false
	if d.row.paced || d.row.protocol.Timing == parley.Synchronous {
		d.Delay.Least, d.Delay.Most = 1, 3*rely.Delay
	}
}

// relied returns what the protocol relies on. What it does not say it relies on are
// the delays of the simulator, and clocks of which rounds bear a little drift: the
// plan says so then.
func (d draft) relied() parley.ModelAssumptions {
	rely := d.row.protocol.Relies
	rely.Delay, rely.Drift = cmp.Or(rely.Delay, 900), cmp.Or(rely.Drift, gentle)
	if rely != d.row.protocol.Relies {
		d.Promised = rely
	}
	return rely
}
