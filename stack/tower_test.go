package stack_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"parley"
	"parley/agreement/eig"
	"parley/faulty"
	"parley/lockstep"
	"parley/parleytest"
	"parley/sim"
	"parley/stack"
	"parley/trace"
)

// pass is a third layer: it has the layer beneath carry for the host, with a mark of
// its own, and sets aside what it carried.
type pass struct {
	parley.Base
	n int
}

func newPass(n int) parley.Protocol {
	p := newOrder(n)
	p.Name, p.New = "pass", func(parley.ID) parley.Machine { return &pass{} }
	return p
}

func (p *pass) Request(s *parley.Step, m parley.Msg) {
	s.Broadcast(parley.Msg{Kind: 2, Value: 77, Body: m.Body})
}

func (p *pass) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Kind == 2 && m.Value == 77 {
		p.n++
		s.Deliver(from, parley.Msg{Kind: parley.Carried, Origin: from, Body: m.Body})
	}
}

func (p *pass) State(v *parley.Vars) { parley.Num(v, "n", &p.n) }

func towers(n int) map[string]parley.Protocol {
	f, o, w, p := newFlood(n), newOrder(n), newWatch(n), newPass(n)
	return map[string]parley.Protocol{
		"flood":                        f,
		"flood/order":                  stack.New(f, o),
		"watch/flood/order":            stack.New(w, f, o),
		"flood/watch/order":            stack.New(f, w, o),
		"watch/flood/order/pass":       stack.New(w, f, o, p),
		"(watch/flood)/order/pass":     stack.New(stack.New(w, f), o, p),
		"watch/(flood/order)/pass":     stack.New(w, stack.New(f, o), p),
		"watch/flood/(order/pass)":     stack.New(w, f, stack.New(o, p)),
		"(watch/(flood/(order)))/pass": stack.New(stack.New(w, stack.New(f, stack.New(o))), p),
		"order on two floods":          stack.New(f, o, f, o),
	}
}

// The protocol suite passes for every tower: with the properties of its top layer,
// crashes, and machines saved and loaded in the middle of runs.
func TestSuite(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(towers(4))) {
		t.Run(name, func(t *testing.T) {
			parleytest.Suite(t, towers(4)[name], parleytest.Options{Seeds: 40, NeverBack: true})
		})
	}
}

// run makes a run with a crash in the middle of a broadcast.
func run(p parley.Protocol, seed uint64, keep bool) (*sim.Sim, *trace.Log) {
	r := rand.New(rand.NewPCG(seed, 9))
	log := &trace.Log{Keep: keep}
	opt := sim.Options{Protocol: p, Seed: seed, Log: log}
	for id := range parley.ID(p.N) {
		for k := range 3 {
			opt.Requests = append(opt.Requests, sim.Request{
				At: id, When: parley.Tick(100 * k), Msg: parley.Msg{Kind: parley.Carried,
					Body: fmt.Appendf(nil, "%d.%d", id, k)},
			})
		}
	}
	opt.Crashes = []sim.Crash{{At: parley.ID(p.N - 1), Step: 2 + r.IntN(8), Effects: r.IntN(p.N)}}
	return sim.Run(opt), log
}

// A stack of three layers behaves the same however it is nested: equal
// deliveries at the same times, message for message. All suspect the crashed process.
func TestNesting(t *testing.T) {
	const n = 4
	all := towers(n)
	for seed := range uint64(50) {
		var want []parley.ExternalEvent
		for _, name := range []string{
			"watch/flood/order/pass", "(watch/flood)/order/pass", "watch/(flood/order)/pass", "watch/flood/(order/pass)",
			"(watch/(flood/(order)))/pass",
		} {
			s, log := run(all[name], seed, true)
			for i := range s.History.Deliveries {
				s.History.Deliveries[i].Path = 0 // it depends on the nesting
			}
			if want == nil {
				want = s.History.Deliveries
			}
			if !reflect.DeepEqual(want, s.History.Deliveries) {
				t.Fatalf("seed %d: %s delivers something else", seed, name)
			}
			suspicions := 0
			for _, e := range log.Events {
				if e.Op == trace.Indicate && e.At < n-1 && e.Msg.Origin == n-1 {
					suspicions++
				}
			}
			if suspicions != n-1 {
				t.Fatalf("seed %d: %s: %d suspect the one that crashed", seed, name, suspicions)
			}
			if _, again := run(all[name], seed, false); again.Hash() != log.Hash() {
				t.Fatalf("seed %d: %s: two runs differ", seed, name)
			}
		}
		if len(want) < 9*(n-1) {
			t.Fatalf("seed %d: only %d deliveries", seed, len(want))
		}
	}
}

// Suspicions pass a layer that ignores them and reach the layers above it.
func TestSuspicionPasses(t *testing.T) {
	s, _ := run(stack.New(newWatch(4), newFlood(4), newOrder(4)), 3, false)
	for id := range parley.ID(3) {
		shown := parley.Show(s.Machine(id), s.Now())
		if !slices.ContainsFunc(shown, func(v parley.Variable) bool { return v.Name == "order.late" && v.Value == "[3]" }) {
			t.Error(id, shown)
		}
	}
}

// A faulty process lies in what is carried as the layer above would: order's Lies lie in
// what flood carries, and pass's Lies in what order carries.
func TestLiesInCarriedMessages(t *testing.T) {
	n := 4
	top := newPass(n)
	top.Lies = func(s *parley.Step, t *parley.Turn) []parley.Outgoing {
		out := slices.Clone(t.Honest)
		for i := range out {
			out[i].Msg.Body = []byte("lie")
		}
		return out
	}
	s := sim.Run(sim.Options{
		Protocol: stack.New(newFlood(n), newOrder(n), top),
		Faulty:   map[parley.ID]faulty.Behavior{0: faulty.Flip},
		Requests: []sim.Request{{At: 0, Msg: parley.Msg{Kind: parley.Carried, Body: []byte("truth")}}},
	})
	heard := make(map[string]int)
	for _, d := range s.History.Deliveries {
		if d.At != 0 {
			heard[fmt.Sprintf("%d:%s", d.From, d.Msg.Body)]++
		}
	}
	if want := map[string]int{"0:lie": n - 1}; !reflect.DeepEqual(heard, want) {
		t.Error(heard)
	}
}

// A faulty process cannot reach a layer except through the layer that carries for it: all
// that it sends on links as messages of the upper layers is refused and changes nothing.
func TestForgedOnLinks(t *testing.T) {
	const n, liar = 4, 3
	for name, paths := range map[string][]parley.Path{
		"flood/order":                  {1},
		"watch/flood/order/pass":       {2, 3},
		"(watch/flood)/order/pass":     {1, 2},
		"watch/flood/(order/pass)":     {2, 2 | 1<<2},
		"(watch/(flood/(order)))/pass": {0 | 1<<1 | 1<<2, 1},
	} {
		p := towers(n)[name]
		for seed := range uint64(20) {
			forged := 0
			forge := faulty.Behavior{Name: "forge", Tell: func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
				out := slices.Clone(t.Honest)
				for _, path := range paths {
					for k := range uint64(3) {
						forged += 2
						out = append(out,
							parley.Outgoing{Path: path, Msg: parley.Msg{Kind: data, Seq: k + 1, Body: []byte("only you")}},
							parley.Outgoing{Path: path, Msg: parley.Msg{Kind: 2, Value: 77, Body: []byte("only you")}})
					}
				}
				return out
			}}
			opt := sim.Options{Protocol: p, Seed: seed, Faulty: map[parley.ID]faulty.Behavior{liar: forge}}
			for id := range parley.ID(n) {
				opt.Requests = append(opt.Requests, sim.Request{At: id, When: 100 * parley.Tick(id),
					Msg: parley.Msg{Kind: parley.Carried, Body: fmt.Appendf(nil, "%d", id)}})
			}
			s := sim.Run(opt)
			for _, property := range p.Properties {
				if err := property.Check(&s.History); err != nil {
					t.Errorf("%s, seed %d: %s: %v", name, seed, property.Name, err)
				}
			}
			refused := s.Stats.Refused["link message to a layer that is carried"]
			if forged == 0 || refused != uint64(forged) || len(s.Stats.Refused) != 1 {
				t.Errorf("%s, seed %d: %d forged, refused %v", name, seed, forged, s.Stats.Refused)
			}
		}
	}
}

// With the detector beneath an agreement, rounds work as without it, and the stack
// can be renamed, because it carries nothing.
func TestUnderRounds(t *testing.T) {
	c := eig.Config{N: 4, M: 1, Default: []byte("0")}
	parleytest.Suite(t, quiet(stack.New(newWatch(4), eig.New(c, lockstep.Simulated))),
		parleytest.Options{Seeds: 60})
}

// quiet removes the fault model of the detector, from which agreement needs nothing.
func quiet(p parley.Protocol) parley.Protocol {
	p.Faults = parley.OralByzantineFaults
	return p
}
