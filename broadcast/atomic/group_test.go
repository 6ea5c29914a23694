package atomic_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/atomic"
	"parley/broadcast/problem"
	"parley/membership/group"
	"parley/parleytest"
	"parley/sim"
)

// Who comes back joins in the middle of what others have delivered, or delivers again:
// see TestReturnsInViews.
func TestSuiteInViews(t *testing.T) {
	for _, n := range []int{3, 4} {
		p := atomic.InViews(group.Config{N: n})
		p.Cost = nil // that is of one broadcast
		parleytest.Suite(t, p, parleytest.Options{
			Seeds: 60, Inputs: named(n), NeverBack: true, Sim: sim.Options{FIFO: true, Until: 40_000},
			Beyond: []parleytest.Beyond{{Protocol: atomic.InViews(group.Config{N: n, M: (n + 1) / 2}), Faulty: (n + 1) / 2}},
		})
	}
}

// One broadcast to all costs what the lecture's form does, and n messages more on
// each of n-1 links.
func TestCostInViews(t *testing.T) {
	p := atomic.InViews(group.Config{N: 5})
	s := sim.Run(sim.Options{Protocol: p, FIFO: true, Until: 10_000, Measure: true,
		Requests: []sim.Request{{Msg: problem.Request([]byte("m"))}}})
	if have, want := s.Stats.Sent[0], p.Cost(5, 0).Total(); have != want || want.Messages != 3*4+5*4 {
		t.Errorf("%v was sent, and the theorem says %v", have, want)
	}
}

// weathered draws a run in which processes crash, links lose all for a time or are slow,
// and processes that live are suspected. From some time on all is well, but for what
// is down.
func weathered(seed uint64, p parley.Protocol, back bool) sim.Options {
	r := rand.New(rand.NewPCG(seed, 99))
	n := p.N
	id := func() parley.ID { return parley.ID(r.IntN(n)) }
	const heal = 20_000
	when := func() parley.Tick { return 1 + parley.Tick(r.IntN(heal)) }
	opt := sim.Options{Protocol: p, Seed: seed, FIFO: true, Heal: heal, Until: 90_000}
	for k := range 6 + r.IntN(10) {
		m := problem.Request(fmt.Appendf(nil, "m%d", k))
		if r.IntN(2) == 0 {
			m = problem.RequestTo(parley.SetOf(receivers(r, n, false)...), fmt.Appendf(nil, "m%d", k))
		}
		at, time := id(), when()
		opt.Requests = append(opt.Requests, sim.Request{At: at, When: time, Msg: m})
		if r.IntN(2) == 0 { // and it is slow, and suspected, while that is under way
			wrong := sim.Suspicion{At: id(), Of: at, When: time + parley.Tick(r.IntN(3000))}
			opt.Suspicions = append(opt.Suspicions, wrong)
			opt.Links = append(opt.Links, sim.Link{
				From: parley.SetOf(at), Since: max(0, wrong.When-500), Until: wrong.When + 1500, Delay: sim.Delay{Least: 1000, Most: 6000},
			})
		}
	}
	for range r.IntN((n + 1) / 2) {
		crash := sim.Crash{At: id(), When: when(), Effects: r.IntN(2 * n)}
		if back && r.IntN(2) == 0 {
			crash.Back = 1 + parley.Tick(r.IntN(10_000))
		}
		opt.Crashes = append(opt.Crashes, crash)
	}
	for range r.IntN(3) {
		since := when()
		l := sim.Link{From: parley.SetOf(id()), To: parley.SetOf(id(), id()), Since: since, Until: since + 1 + parley.Tick(r.IntN(4000)), Loss: 1}
		if r.IntN(3) == 0 {
			l.Loss, l.Delay = 0, sim.Delay{Least: 1000, Most: 4000}
		}
		opt.Links = append(opt.Links, l)
	}
	return opt
}

// excluded counts those who were told that they are out as faulty, and tells whether
// a majority of the last view lives.
func excluded(h *parley.History) (outs int, majority bool) {
	var last parley.Msg
	for _, e := range h.Indications {
		switch {
		case e.Msg.Kind == group.Out:
			h.Faulty.Add(e.At)
			outs++
		case e.Msg.Kind == parley.View && e.Msg.Seq > last.Seq:
			last = e.Msg
		}
	}
	members, _, _ := problem.ReadSet(last.Body, h.N)
	return outs, 2*members.Minus(h.Faulty).Len() > members.Len()
}

// False suspicions, partitions and crashes: no view change, right or wrong, breaks
// uniform order, and while a majority of the last view lives, all that its members
// broadcast is delivered by those that it is for.
func TestFalseSuspicionsInViews(t *testing.T) {
	outs, live := 0, 0
	for _, n := range []int{3, 4, 5} {
		p := atomic.InViews(group.Config{N: n})
		for seed := range uint64(120) {
			s := sim.Run(weathered(seed, p, false))
			out, majority := excluded(&s.History)
			outs += out
			names := append(slices.Clone(always), problem.Integrity, problem.UniformPrefix)
			if majority {
				live++
				names = append(names, problem.UniformAgreement, problem.Validity)
			}
			if err := broken(p, &s.History, names); err != nil {
				t.Fatalf("n = %d, seed %d: %v", n, seed, err)
			}
		}
	}
	t.Logf("%d processes were excluded; in %d of 360 runs a majority of the last view lived", outs, live)
	if outs < 100 || live < 250 {
		t.Error("too little happened")
	}
}

// always are the properties that hold whatever happens.
var always = []string{group.ViewAgreement, group.ViewOrder, group.ViewSynchrony, problem.UniformTotalOrder}

// Processes come back, from nothing and join or from their log, and the excluded join
// again. A joiner is a copy of its sponsor, so that integrity is not asked for.
func TestReturnsInViews(t *testing.T) {
	for name, c := range map[string]group.Config{
		"memory":  {N: 4, Return: true},
		"durable": {N: 4, Return: true, Durable: true, Compact: 8},
	} {
		t.Run(name, func(t *testing.T) {
			p := atomic.InViews(c)
			joined, restarts := 0, 0
			for seed := range uint64(150) {
				s := sim.Run(weathered(seed, p, true))
				if err := broken(p, &s.History, always); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				restarts += len(s.History.Restarts)
				for _, e := range s.History.Indications {
					if e.Msg.Kind == group.Restored {
						joined++
					}
				}
			}
			t.Logf("%d restarts, %d snapshots", restarts, joined)
			if restarts < 20 || joined < 20 {
				t.Error("too little happened")
			}
		})
	}
}

// broken returns the first of the named properties of p that does not hold.
func broken(p parley.Protocol, h *parley.History, names []string) error {
	for _, property := range p.Properties {
		if !slices.Contains(names, property.Name) {
			continue
		}
		if err := property.Check(h); err != nil {
			return fmt.Errorf("%s: %w", property.Name, err)
		}
	}
	return nil
}
