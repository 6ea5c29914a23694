package main

import (
	"cmp"
	"math/rand/v2"

	"parley"
	"parley/faulty"
	"parley/run"
)

// column is one kind of fault, or several kinds together.
type column struct {
	name string
	// add adds the faults to the plan of a run, most of them to be drawn later; nil: none.
	add func(d draft)
	// liars returns the number of processes in the coalition; nil: none.
	liars func(p parley.Protocol, seed uint64) int
	hows  []faulty.Behavior // their behaviors, of which each draws one
	// shows are the kinds of fault, other than those of liars, that must each occur in some run of the cell.
	shows []string
}

// draft is the plan of a row's run, to which faults are added.
type draft struct {
	*run.Plan
	row  *row
	seed uint64
}

// wrongClocks is the name of the fault of drifting clocks.
const wrongClocks = "clocks wrong"

// Drifts in parts per million: one that the slack of rounds covers, and one that nothing covers.
const (
	gentle = 1_000
	wild   = 300_000
)

var (
	lies  = []faulty.Behavior{faulty.Random, faulty.TwoFaced, faulty.Flip, faulty.Twin, faulty.Silent}
	omits = []faulty.Behavior{faulty.SendOmission, faulty.ReceiveOmission}
)

// within returns the number of faults that the model allows, or 1 if it allows none: then one is too many.
func within(p parley.Protocol) int { return max(p.M, 1) }

// upto returns a number of faults that the model allows, depending on the seed.
func upto(p parley.Protocol, seed uint64) int { return 1 + int(seed%uint64(within(p))) }

// lying returns the number of liars that the model allows, or 1 if it allows none.
func lying(p parley.Protocol, _ uint64) int {
	if p.Faults < parley.SignedByzantineFaults {
		return 1
	}
	return within(p)
}

// beyond returns one liar more, as long as that leaves two processes to compare.
func beyond(p parley.Protocol, seed uint64) int { return max(min(lying(p, seed)+1, p.N-2), 1) }

// columns returns the kinds of fault, first one at a time and then together.
func columns() []column { return append(alone(), together()...) }

// shown returns the kinds of fault that must occur.
func (c *column) shown() []string {
	if c.liars == nil {
		return c.shows
	}
	return append([]string{"messages of faulty processes"}, c.shows...)
}

// oneFault returns the column of one kind of fault, which must occur.
func oneFault(name, kind string, add func(d draft)) column {
	return column{name: name, shows: []string{kind}, add: add}
}

// alone returns the columns with one kind of fault.
func alone() []column {
	return []column{
		oneFault("crash", "crashes", func(d draft) { d.Random.Crashes = upto(d.row.protocol, d.seed) }),
		oneFault("crash>m", "crashes", func(d draft) { d.Random.Crashes = min(d.row.protocol.M+1, d.row.protocol.N-1) }),
		oneFault("restart", "restarts", func(d draft) { d.Random.Restarts = 1 + int(d.seed%2) }),
		oneFault("lost disk", "disks lost", func(d draft) { d.Random.LostDisks = 1 + int(d.seed%2) }),
		oneFault("loss", "messages lost", func(d draft) { d.Loss = 0.2 }),
		oneFault("double", "messages doubled", func(d draft) { d.FIFO, d.Twice = false, 0.3 }),
		oneFault("reorder", "messages overtaken", reorder),
		oneFault("cut", "messages cut off", func(d draft) { d.Random.Partitions = 1 + int(d.seed%2) }),
		oneFault("one-way", "messages cut off", func(d draft) { d.Random.OneWay = 1 }),
		oneFault("no link", "messages without a link", sparse),
		oneFault("slow", "messages late", func(d draft) { d.Random.Slow = 1 + int(d.seed%2) }),
		oneFault("pause", "pauses", func(d draft) { d.Random.Pauses = 1 + int(d.seed%2) }),
		oneFault("suspect", "false suspicions", func(d draft) { d.Random.Suspicions = 1 + int(d.seed%3) }),
		oneFault("drift", wrongClocks, func(d draft) { d.Random.Drift = int(d.relied().Drift) }),
		oneFault("drift>", wrongClocks, func(d draft) { d.Random.Drift = wild }),
		{name: "omit", liars: upto, hows: omits},
		{name: "lie", liars: lying, hows: lies},
		{name: "lie>m", liars: beyond, hows: lies[:4]},
	}
}

// together returns the columns with several kinds of fault.
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

// sparse keeps the links that join the processes in a row, ordered by the seed, and half of all other links.
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

// reorder lets messages overtake one another. If that is impossible within the delays that the protocol assumes, as
// in rounds, it makes the delays longer.
func reorder(d draft) {
	rely := d.relied()
	d.FIFO = false
	if d.row.paced || d.row.protocol.Timing == parley.Synchronous {
		d.Delay.Least, d.Delay.Most = 1, 3*rely.Delay
	}
}

// relied returns the protocol's assumptions. Where it states none, they are the delays of the simulator, and clocks
// with a drift that rounds tolerate; the plan then promises them.
func (d draft) relied() parley.ModelAssumptions {
	rely := d.row.protocol.Relies
	rely.Delay, rely.Drift = cmp.Or(rely.Delay, 900), cmp.Or(rely.Drift, gentle)
	if rely != d.row.protocol.Relies {
		d.Promised = rely
	}
	return rely
}
