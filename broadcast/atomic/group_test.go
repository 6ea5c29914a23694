package atomic_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/atomic"
	"parley/broadcast/problem"
	"parley/internal/viewtest"
	"parley/membership/group"
	"parley/parleytest"
	"parley/sim"
)

// A restarted process joins in the middle of what others have delivered: see TestReturnsInViews.
func TestSuiteInViews(t *testing.T) {
	for _, n := range []int{3, 4} {
		p := atomic.InViews(group.Config{N: n})
		p.Cost = nil // it counts one broadcast
		parleytest.Suite(t, p, parleytest.Options{
			Seeds: 60, Inputs: named(n), NeverBack: true, Sim: sim.Options{FIFO: true, Until: 40_000},
			Beyond: []parleytest.Beyond{{Protocol: atomic.InViews(group.Config{N: n, M: (n + 1) / 2}), Faulty: (n + 1) / 2}},
		})
	}
}

func FuzzReceiveInViews(f *testing.F) {
	parleytest.Fuzz(f, atomic.InViews(group.Config{N: 3}), parleytest.Options{Inputs: named(3), Sim: sim.Options{FIFO: true}})
}

// One broadcast to all costs what it costs in the lecture's form, and n more messages on each of n-1 links.
func TestCostInViews(t *testing.T) {
	p := atomic.InViews(group.Config{N: 5})
	s := sim.Run(sim.Options{Protocol: p, FIFO: true, Until: 10_000, Measure: true,
		Requests: []sim.Request{{Msg: problem.Request([]byte("m"))}}})
	if have, want := s.Stats.Sent[0], p.Cost(5, 0).Total(); have != want || want.Messages != 3*4+5*4 {
		t.Errorf("%v was sent, and the theorem says %v", have, want)
	}
}

// weathered draws a run with every fault that views tolerate, in which messages go to some processes or to
// all, and many senders are slow, and suspected, while their messages are in flight.
func weathered(seed uint64, p parley.Protocol, back bool) sim.Options {
	opt, r := viewtest.Storm(seed, p), rand.New(rand.NewPCG(seed, 98))
	for i := range opt.Requests {
		q := &opt.Requests[i]
		if r.IntN(2) == 0 {
			q.Msg = problem.RequestTo(parley.SetOf(receivers(r, p.N, false)...), q.Msg.Body)
		}
		if r.IntN(2) == 0 {
			wrong := sim.Suspicion{At: parley.ID(r.IntN(p.N)), Of: q.At, When: q.When + parley.Tick(r.IntN(3000))}
			opt.Suspicions = append(opt.Suspicions, wrong)
			opt.Links = append(opt.Links, sim.Link{
				From: parley.SetOf(q.At), Since: max(0, wrong.When-500), Until: wrong.When + 1500, Delay: sim.Delay{Least: 1000, Most: 6000},
			})
		}
	}
	for i, c := range opt.Crashes {
		if !back {
			opt.Crashes[i] = sim.Crash{At: c.At, When: c.When, Effects: c.Effects}
		}
	}
	return opt
}

// excluded counts the processes that were excluded as faulty, and reports whether a majority of the last view
// is alive.
func excluded(h *parley.History) (outs int, majority bool) {
	for _, e := range h.Indications {
		if e.Msg.Kind == group.Excluded {
			h.Faulty.Add(e.At)
			outs++
		}
	}
	return outs, 2*h.Faulty.Len() < h.N
}

// False suspicions, partitions and crashes: no view change, right or wrong, breaks uniform order; and while a
// majority of the last view is alive, the receivers deliver all that its members broadcast.
func TestFalseSuspicionsInViews(t *testing.T) {
	outs, live := 0, 0
	for _, n := range []int{3, 4, 5} {
		p := atomic.InViews(group.Config{N: n})
		for seed := range uint64(120) {
			s := sim.Run(weathered(seed, p, false))
			parleytest.Judge(t, p, s, seed)
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
	if outs < 100 || live < 180 {
		t.Error("too little happened")
	}
}

// always names the properties that hold in every run.
var always = []string{group.ViewAgreement, group.ViewOrder, group.ViewSynchrony, problem.UniformTotalOrder}

// Processes restart, empty and join or from their log, and excluded ones rejoin. In each incarnation a
// process delivers nothing twice, and nothing that is not addressed to it.
func TestReturnsInViews(t *testing.T) {
	for name, c := range map[string]group.Config{
		"memory":  {N: 4, Return: true},
		"durable": {N: 4, Return: true, Durable: true, Compact: 8},
	} {
		t.Run(name, func(t *testing.T) {
			p := atomic.InViews(c)
			joined, restarts := 0, 0
			for seed := range uint64(150) {
				s := sim.Run(weathered(seed, p, seed%3 > 0))
				parleytest.Judge(t, p, s, seed)
				if err := broken(p, &s.History, append(slices.Clone(always), problem.Integrity)); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				restarts += len(s.History.Restarts)
				joined += viewtest.Count(&s.History, group.SnapshotInstalled)
			}
			t.Logf("%d restarts, %d snapshots", restarts, joined)
			if restarts < 20 || joined < 20 {
				t.Error("too little happened")
			}
		})
	}
}

// An excluded process rejoins while others send to named receivers: it delivers nothing that is not addressed
// to it, although its sponsor does.
func TestReturnToOthersMessages(t *testing.T) {
	p := atomic.InViews(group.Config{N: 4, Return: true})
	opt := sim.Options{Protocol: p, FIFO: true, Until: 60_000}
	opt.Links = []sim.Link{{From: parley.SetOf(1), To: parley.SetOf(0, 2, 3), Since: 700, Until: 3000, Loss: 1}}
	for k := range 60 {
		m := problem.RequestTo(parley.SetOf(0, 2, 3), fmt.Appendf(nil, "others %d", k))
		if k%2 == 0 {
			m = problem.Request(fmt.Appendf(nil, "all %d", k))
		}
		opt.Requests = append(opt.Requests, sim.Request{At: 3, When: parley.Tick(200 * k), Msg: m})
	}
	joined := 0
	for opt.Seed = range 20 {
		s := sim.Run(opt)
		joins := func(e parley.ExternalEvent) bool { return e.At == 1 && e.Msg.Kind == group.SnapshotInstalled }
		if at := slices.IndexFunc(s.History.Indications, joins); at >= 0 {
			joined++
			since := s.History.Indications[at].Order
			if !slices.ContainsFunc(s.History.Deliveries, func(d parley.ExternalEvent) bool { return d.At == 1 && d.Order > since }) {
				t.Errorf("seed %d: it joins and delivers nothing", opt.Seed)
			}
		}
		if err := broken(p, &s.History, append(slices.Clone(always), problem.Integrity)); err != nil {
			t.Fatalf("seed %d: %v", opt.Seed, err)
		}
	}
	if joined == 0 {
		t.Error("it never joins")
	}
}

// A member that sends only to others, and always has a message in flight, delivers nothing. That alone causes
// no view change. But if one of its messages is lost, and nothing follows it on its link, there is another
// view, although the messages to others continue: otherwise it would never be delivered.
func TestSendsToOthersAlone(t *testing.T) {
	p := atomic.InViews(group.Config{N: 3})
	for _, lost := range []bool{false, true} {
		opt := sim.Options{Protocol: p, Seed: 5, FIFO: true, Until: 60_000}
		for k := range 250 {
			m := problem.RequestTo(parley.SetOf(1), fmt.Appendf(nil, "m%d", k))
			opt.Requests = append(opt.Requests, sim.Request{At: 0, When: parley.Tick(100 + 150*k), Msg: m})
		}
		opt.Requests = append(opt.Requests,
			sim.Request{At: 0, When: 5010, Msg: problem.RequestTo(parley.SetOf(2), []byte("once"))})
		if lost {
			opt.Links = []sim.Link{{From: parley.SetOf(0), To: parley.SetOf(2), Since: 5009, Until: 5012, Loss: 1}}
		}
		s := sim.Run(opt)
		if have, want := viewtest.Count(&s.History, parley.View), map[bool]int{false: 3, true: 6}[lost]; have != want {
			t.Errorf("lost: %v: %d views were installed, expected %d", lost, have, want)
		}
		if have := len(s.History.Deliveries); have != 251 {
			t.Errorf("lost: %v: %d deliveries", lost, have)
		}
	}
}

// Which promises hold in views, and under which conditions some do not.
func TestPromisesInViews(t *testing.T) {
	safe := []string{group.ViewAgreement, group.ViewOrder, group.ViewSynchrony, problem.Integrity, problem.UniformTotalOrder}
	whole := append(slices.Clone(safe), problem.UniformPrefix)
	everything := append(slices.Clone(whole), problem.UniformAgreement, problem.Validity)
	suspected := parley.RunConditions{N: 4, Processes: parley.ProcessFaults{Suspected: true}}
	for name, c := range map[string]struct {
		c    group.Config
		a    parley.RunConditions
		want []string
	}{
		"no fault":          {group.Config{N: 4, Return: true}, parley.RunConditions{N: 4}, everything},
		"a crash":           {group.Config{N: 4}, parley.RunConditions{N: 4, Faulty: 1}, everything},
		"too many crashes":  {group.Config{N: 4}, parley.RunConditions{N: 4, Faulty: 2}, whole},
		"a false suspicion": {group.Config{N: 4}, suspected, whole},
		"and a return":      {group.Config{N: 4, Return: true}, suspected, safe},
		"a loss":            {group.Config{N: 4}, parley.RunConditions{N: 4, Network: parley.NetworkFaults{Lost: true}}, whole},
		"a cut and a return": {group.Config{N: 4, Return: true}, parley.RunConditions{N: 4, Network: parley.NetworkFaults{Cut: true}},
			safe},
		"a restart":  {group.Config{N: 4}, parley.RunConditions{N: 4, Processes: parley.ProcessFaults{Restarted: true}}, safe},
		"outsiders":  {group.Config{N: 4, Initial: parley.SetOf(0, 1, 2)}, parley.RunConditions{N: 4}, safe},
		"reordering": {group.Config{N: 4}, parley.RunConditions{N: 4, Network: parley.NetworkFaults{Reordered: true}}, nil},
		"lost disk":  {group.Config{N: 4}, parley.RunConditions{N: 4, Processes: parley.ProcessFaults{LostDisk: true}}, safe},
	} {
		for _, promise := range atomic.InViews(c.c).Promises(c.a) {
			if promise.Holds != slices.Contains(c.want, promise.Property) || promise.Because == "" {
				t.Errorf("%s: %+v", name, promise)
			}
		}
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

func TestDeliveredSurvivesRestartsOfAll(t *testing.T) {
	viewtest.DeliveredSurvivesRestartsOfAll(t, atomic.InViews(group.Config{N: 3, Return: true, Durable: true}))
}
