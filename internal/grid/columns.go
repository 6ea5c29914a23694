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
	add func(p *run.Plan, r *row, seed uint64)
	// liars is how many processes are in the coalition; nil: none.
	liars func(p parley.Protocol, seed uint64) int
	hows  []faulty.Behaviour // how they behave, of which each draws one
	// shows are the kinds of fault that must come, each in some run of the cell, beside those
	// of liars.
	shows []string
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
	lies  = []faulty.Behaviour{faulty.Random, faulty.TwoFaced, faulty.Flip, faulty.Twin, faulty.Silent}
	omits = []faulty.Behaviour{faulty.SendOmission, faulty.ReceiveOmission}
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

// alone are the kinds of fault, one at a time.
func alone() []column {
	return []column{
		{name: "crash", shows: []string{"crashes"},
			add: func(p *run.Plan, r *row, seed uint64) { p.Random.Crashes = upto(r.protocol, seed) }},
		{name: "crash>m", shows: []string{"crashes"},
			add: func(p *run.Plan, r *row, _ uint64) { p.Random.Crashes = min(r.protocol.M+1, r.protocol.N-1) }},
		{name: "restart", shows: []string{"restarts"},
			add: func(p *run.Plan, _ *row, seed uint64) { p.Random.Restarts = 1 + int(seed%2) }},
		{name: "lost disk", shows: []string{"disks lost"},
			add: func(p *run.Plan, _ *row, seed uint64) { p.Random.LostDisks = 1 + int(seed%2) }},
		{name: "loss", shows: []string{"messages lost"},
			add: func(p *run.Plan, _ *row, _ uint64) { p.Loss = 0.2 }},
		{name: "double", shows: []string{"messages doubled"},
			add: func(p *run.Plan, _ *row, _ uint64) { p.FIFO, p.Twice = false, 0.3 }},
		{name: "reorder", shows: []string{"messages overtaken"}, add: reorder},
		{name: "cut", shows: []string{"messages cut off"},
			add: func(p *run.Plan, _ *row, seed uint64) { p.Random.Partitions = 1 + int(seed%2) }},
		{name: "one-way", shows: []string{"messages cut off"},
			add: func(p *run.Plan, _ *row, _ uint64) { p.Random.OneWay = 1 }},
		{name: "no link", shows: []string{"messages without a link"}, add: sparse},
		{name: "slow", shows: []string{"messages late"},
			add: func(p *run.Plan, _ *row, seed uint64) { p.Random.Slow = 1 + int(seed%2) }},
		{name: "pause", shows: []string{"pauses"},
			add: func(p *run.Plan, _ *row, seed uint64) { p.Random.Pauses = 1 + int(seed%2) }},
		{name: "suspect", shows: []string{"false suspicions"},
			add: func(p *run.Plan, _ *row, seed uint64) { p.Random.Suspicions = 1 + int(seed%3) }},
		{name: "drift", shows: []string{wrongClocks},
			add: func(p *run.Plan, r *row, _ uint64) { p.Random.Drift = int(relied(p, r).Drift) }},
		{name: "drift>", shows: []string{wrongClocks},
			add: func(p *run.Plan, _ *row, _ uint64) { p.Random.Drift = wild }},
		{name: "omit", liars: upto, hows: omits},
		{name: "lie", liars: lying, hows: lies},
		{name: "lie>m", liars: beyond, hows: lies[:4]},
	}
}

// together are several kinds at once.
func together() []column {
	return []column{
		{name: "crash+suspect", shows: []string{"crashes", "false suspicions"},
			add: func(p *run.Plan, r *row, seed uint64) {
				p.Random.Crashes, p.Random.Suspicions = upto(r.protocol, seed), 1+int(seed%2)
			}},
		{name: "rough", shows: []string{"crashes", "messages late", "pauses", "false suspicions"},
			add: func(p *run.Plan, r *row, seed uint64) {
				p.Random.Crashes = upto(r.protocol, seed)
				p.Random.Slow, p.Random.Pauses, p.Random.Suspicions, p.Twice = 1, 1, 1, 0.2
			}},
		{name: "restart+slow", shows: []string{"restarts", "messages late"},
			add: func(p *run.Plan, _ *row, _ uint64) { p.Random.Restarts, p.Random.Slow = 1, 1 }},
		{name: "lie+slow", liars: lying, hows: lies, shows: []string{"messages late"},
			add: func(p *run.Plan, _ *row, _ uint64) { p.Random.Slow = 1 }},
		{name: "restart+cut", shows: []string{"restarts", "messages cut off", "messages lost"},
			add: func(p *run.Plan, _ *row, _ uint64) {
				p.Random.Restarts, p.Random.Partitions, p.Loss = 2, 2, 0.1
			}},
		{name: "disk+cut", shows: []string{"disks lost", "messages cut off", "messages lost"},
			add: func(p *run.Plan, _ *row, _ uint64) {
				p.Random.LostDisks, p.Random.Partitions, p.Loss = 2, 2, 0.1
			}},
		{name: "storm", shows: []string{
			"crashes", "restarts", "messages lost", "messages cut off", "messages late", "pauses", "false suspicions",
		}, add: func(p *run.Plan, _ *row, _ uint64) {
			p.Random.Crashes, p.Random.Restarts, p.Random.Lossy, p.Random.Partitions = 1, 1, 1, 1
			p.Random.Slow, p.Random.Pauses, p.Random.Suspicions = 1, 1, 1
		}},
	}
}

// sparse leaves of all links those that join the processes in a row, in an order of the
// seed's, and half of the others.
func sparse(p *run.Plan, r *row, seed uint64) {
	n, d := r.protocol.N, rand.New(rand.NewPCG(seed, 0x9a7))
	p.Graph = make([]parley.Set, n)
	order := d.Perm(n)
	for i := range order {
		for k := range i {
			if a, b := order[i], order[k]; k == i-1 || d.IntN(2) == 0 {
				p.Graph[a].Add(parley.ID(b))
				p.Graph[b].Add(parley.ID(a))
			}
		}
	}
}

// reorder lets messages overtake one another. Where they cannot within the delays
// that the protocol relies on, as in rounds, they take longer.
func reorder(p *run.Plan, r *row, _ uint64) {
	rely := relied(p, r)
	p.FIFO = false
	if r.paced || r.protocol.Timing == parley.Synchronous {
		p.Delay.Least, p.Delay.Most = 1, 3*rely.Delay
	}
}

// relied returns what the protocol relies on. What it does not say it relies on are
// the delays of the simulator, and clocks of which rounds bear a little drift: the
// plan says so then.
func relied(p *run.Plan, r *row) parley.Reliance {
	rely := r.protocol.Relies
	rely.Delay, rely.Drift = cmp.Or(rely.Delay, 900), cmp.Or(rely.Drift, gentle)
	if rely != r.protocol.Relies {
		p.Promised = rely
	}
	return rely
}
