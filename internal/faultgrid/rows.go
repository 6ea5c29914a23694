package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"

	"parley"
	agree "parley/agreement/problem"
	"parley/broadcast/problem"
	"parley/catalog"
	"parley/membership/detector"
	"parley/run"
	"parley/stack"
)

// row is a protocol of the grid with the base plan of its runs.
type row struct {
	protocol parley.Protocol
	// plan is a run without faults. Random says when faults occur and how long they last; the column says which ones
	// occur.
	plan run.Plan
	// values returns the initial values of a run, one for each proposer.
	values func(d *rand.Rand, n int) []string
	// commands, if not nil, returns what is broadcast instead of the plan's payloads.
	commands func(d *rand.Rand) string
	// seen counts the results of a run; nil: deliveries, and for broadcasts those from other processes.
	seen func(h *parley.History) int
	// paced: on each link a message is sent long after the previous one has arrived.
	paced bool
	// percent is the percentage of the requested seeds for a cell; 0: 100.
	percent uint64
}

// seeds returns the number of seeds for a cell.
func (r *row) seeds(wanted uint64) uint64 {
	if r.percent > 0 {
		wanted = wanted * r.percent / 100
	}
	return max(wanted, 1)
}

// count counts the results of a run.
func (r *row) count(h *parley.History) (n int) {
	if r.seen != nil {
		return r.seen(h)
	}
	for i := range h.Deliveries {
		if d := &h.Deliveries[i]; !r.protocol.Serves || d.From != d.At {
			n++
		}
	}
	return n
}

// times returns when faults occur and how long they last, in ticks.
func times(within, last parley.Tick) run.Random { return run.Random{Within: within, Last: last} }

// rounds returns the plan for n rounds.
func rounds(n parley.Tick) run.Plan { return run.Plan{Random: times(1000*n, 1500)} }

// carries returns the plan of a broadcast: a few messages at about the same time.
func carries() run.Plan {
	return run.Plan{Workload: run.Workload{Broadcasts: 8, Within: 4000}, Random: times(5000, 3000)}
}

// until sets the end of the runs of a plan.
func until(p run.Plan, t parley.Tick) run.Plan {
	p.Until = t
	return p
}

// inOrder makes the links of a plan FIFO.
func inOrder(p run.Plan) run.Plan {
	p.FIFO = true
	return p
}

// each returns the initial values of n processes.
func each(n int, value func(i int) string) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = value(i)
	}
	return out
}

// bits returns random initial values 0 and 1.
func bits(d *rand.Rand, n int) []string {
	return each(n, func(int) string { return fmt.Sprint(d.IntN(2)) })
}

// names returns different initial values.
func names(_ *rand.Rand, n int) []string {
	return each(n, func(i int) string { return fmt.Sprintf("v%d", i+1) })
}

// votes returns votes that are mostly all yes.
func votes(d *rand.Rand, n int) []string {
	out := slices.Repeat([]string{"yes"}, n)
	if d.IntN(4) == 0 {
		out[d.IntN(n)] = "no"
	}
	return out
}

// orders returns transactions with the given votes, each with a name of its own.
func orders(votes ...string) func(d *rand.Rand, n int) []string {
	return func(d *rand.Rand, n int) []string {
		return each(n, func(i int) string { return fmt.Sprintf("t%d %s", i, votes[d.IntN(len(votes))]) })
	}
}

// accused returns requests of all processes to expel the same process, or one of two.
func accused(d *rand.Rand, n int) []string {
	one, other := d.IntN(n), d.IntN(n)
	return each(n, func(int) string {
		if d.IntN(4) == 0 {
			return fmt.Sprint(other + 1)
		}
		return fmt.Sprint(one + 1)
	})
}

// transfers returns commands of the bank that do not commute.
func transfers(d *rand.Rand) string {
	if d.IntN(2) == 0 {
		return fmt.Sprintf("interest %d", 1+d.IntN(9))
	}
	return fmt.Sprintf("deposit %d", 1+d.IntN(500))
}

// installed counts the installed views.
func installed(h *parley.History) (n int) {
	for i := range h.Indications {
		if h.Indications[i].Msg.Kind == parley.View {
			n++
		}
	}
	return n
}

// indicated counts indications such as suspicions.
func indicated(h *parley.History) int { return len(h.Indications) }

// called gives a protocol its name in the grid, and removes its flags: its Config is the row's.
func called(name string, p parley.Protocol) parley.Protocol {
	p.Name, p.Flags = name, nil
	return run.Lying(p)
}

// also checks properties that the protocol neither has nor promises.
func also(p parley.Protocol, properties ...string) parley.Protocol {
	p.Properties = append(slices.Clip(p.Properties), problem.Of(properties...)...)
	return p
}

// without removes a property that few cells can show.
func without(p parley.Protocol, property string) parley.Protocol {
	p.Properties = slices.DeleteFunc(slices.Clone(p.Properties), func(q parley.Property) bool {
		return q.Name == property
	})
	return p
}

func instance(n, m int) agree.Instance { return agree.Instance{N: n, M: m, Default: []byte("0")} }

// over puts a layer on a detector that never rests.
func over(top parley.Protocol) parley.Protocol {
	return stack.New(detector.New(detector.Config{N: top.N}), top)
}

// listed returns a protocol of the catalog, made with flags.
func listed(name string, args ...string) parley.Protocol {
	for _, p := range catalog.All() {
		if p.Name != name {
			continue
		}
		fs := flag.NewFlagSet(name, flag.PanicOnError)
		build := p.Flags(fs)
		if err := fs.Parse(args); err != nil {
			panic(err)
		}
		made, err := build(nil)
		if err != nil {
			panic(err)
		}
		return called(name, made)
	}
	panic("the catalog has no " + name)
}
