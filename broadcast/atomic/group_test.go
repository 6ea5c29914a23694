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

// Who comes back joins in the middle of what others have delivered: see
// TestReturnsInViews.
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

func FuzzReceiveInViews(f *testing.F) {
	parleytest.Fuzz(f, atomic.InViews(group.Config{N: 3}), parleytest.Options{Inputs: named(3), Sim: sim.Options{FIFO: true}})
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
	for _, e := range h.Indications {
		if e.Msg.Kind == group.Out {
			h.Faulty.Add(e.At)
			outs++
		}
	}
	return outs, 2*h.Faulty.Len() < h.N
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
	if outs < 100 || live < 250 {
		t.Error("too little happened")
	}
}

// always are the properties that hold whatever happens.
var always = []string{group.ViewAgreement, group.ViewOrder, group.ViewSynchrony, problem.UniformTotalOrder}

// Processes come back, from nothing and join or from their log, and the excluded join
// again. In each of its lives a process delivers nothing twice, and nothing that is not
// for it.
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

// A process that was excluded and joins again, while others send to named receivers: it
// delivers nothing that is not for it, though its sponsor does.
func TestReturnToOthersMessages(t *testing.T) {
	p := atomic.InViews(group.Config{N: 4, Return: true})
	joined := make(map[string]bool)
	for seed := range uint64(20) {
		opt := sim.Options{Protocol: p, Seed: seed, FIFO: true, Until: 60_000}
		opt.Links = []sim.Link{{From: parley.SetOf(1), To: parley.SetOf(0, 2, 3), Since: 700, Until: 3000, Loss: 1}}
		for k := range 60 {
			m := problem.RequestTo(parley.SetOf(0, 2, 3), fmt.Appendf(nil, "others %d", k))
			if k%2 == 0 {
				m = problem.Request(fmt.Appendf(nil, "all %d", k))
			}
			opt.Requests = append(opt.Requests, sim.Request{At: 3, When: parley.Tick(200 * k), Msg: m})
		}
		s := sim.Run(opt)
		for _, e := range s.History.Indications {
			if e.At == 1 && e.Msg.Kind == group.Restored {
				joined["restored"] = true
			}
		}
		for _, d := range s.History.Deliveries {
			if d.At == 1 && len(joined) > 0 {
				joined[string(d.Msg.Body[:3])] = true
			}
		}
		if err := broken(p, &s.History, append(slices.Clone(always), problem.Integrity)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if !joined["restored"] || !joined["all"] {
		t.Errorf("too little happened: %v", joined)
	}
}

// views counts the views that were installed.
func views(h *parley.History) int {
	return len(slices.DeleteFunc(slices.Clone(h.Indications), func(e parley.Happening) bool {
		return e.Msg.Kind != parley.View
	}))
}

// A member that sends to others alone, and always has a message under way, delivers
// nothing. Nobody asks for another view because of that. Yet if one of its messages is
// lost, and nothing follows it on its link, there is another view, although the
// messages to others go on: otherwise it would never be delivered.
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
		if have, want := views(&s.History), map[bool]int{false: 3, true: 6}[lost]; have != want {
			t.Errorf("lost: %v: %d views were installed, expected %d", lost, have, want)
		}
		if have := len(s.History.Deliveries); have != 251 {
			t.Errorf("lost: %v: %d deliveries", lost, have)
		}
	}
}

// What is promised in views, and what of it is not in which circumstances.
func TestWhatIsPromisedInViews(t *testing.T) {
	safe := []string{group.ViewAgreement, group.ViewOrder, group.ViewSynchrony, problem.Integrity, problem.UniformTotalOrder}
	whole := append(slices.Clone(safe), problem.UniformPrefix)
	everything := append(slices.Clone(whole), problem.UniformAgreement, problem.Validity)
	suspected := parley.Assumptions{N: 4, Processes: parley.ProcessFaults{Suspected: true}}
	for name, c := range map[string]struct {
		c    group.Config
		a    parley.Assumptions
		want []string
	}{
		"no fault":          {group.Config{N: 4, Return: true}, parley.Assumptions{N: 4}, everything},
		"a crash":           {group.Config{N: 4}, parley.Assumptions{N: 4, Faulty: 1}, everything},
		"too many crashes":  {group.Config{N: 4}, parley.Assumptions{N: 4, Faulty: 2}, whole},
		"a false suspicion": {group.Config{N: 4}, suspected, whole},
		"and a return":      {group.Config{N: 4, Return: true}, suspected, safe},
		"a loss":            {group.Config{N: 4}, parley.Assumptions{N: 4, Network: parley.NetworkFaults{Lost: true}}, whole},
		"a cut and a return": {group.Config{N: 4, Return: true}, parley.Assumptions{N: 4, Network: parley.NetworkFaults{Cut: true}},
			safe},
		"a restart":  {group.Config{N: 4}, parley.Assumptions{N: 4, Processes: parley.ProcessFaults{Restarted: true}}, safe},
		"outsiders":  {group.Config{N: 4, Initial: parley.SetOf(0, 1, 2)}, parley.Assumptions{N: 4}, safe},
		"reordering": {group.Config{N: 4}, parley.Assumptions{N: 4, Network: parley.NetworkFaults{Reordered: true}}, nil},
		"lost disk":  {group.Config{N: 4}, parley.Assumptions{N: 4, Processes: parley.ProcessFaults{LostDisk: true}}, safe},
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
