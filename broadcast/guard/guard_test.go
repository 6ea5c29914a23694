package guard_test

import (
	"fmt"
	"strings"
	"testing"

	"parley"
	"parley/broadcast/diffusion"
	"parley/broadcast/fifo"
	"parley/broadcast/guard"
	"parley/broadcast/problem"
	"parley/faulty"
	"parley/parleytest"
	"parley/sim"
	"parley/stack"
)

func tower(n int, off bool) parley.Protocol {
	return stack.New(diffusion.New(diffusion.Config{N: n}), fifo.New(fifo.Config{N: n}),
		guard.New(guard.Config{N: n, Off: off}))
}

// deaf is a run in which process 1 receives nothing of the first broadcast of process 0, and all broadcast
// before and after.
func deaf(n int, off bool, seed uint64) *sim.Sim {
	opt := sim.Options{
		Protocol: tower(n, off), Seed: seed,
		Links: []sim.Link{{To: parley.SetOf(1), Since: 1, Until: 2000, Loss: 1}},
	}
	ask := func(at parley.ID, when parley.Tick, what string) {
		opt.Requests = append(opt.Requests, sim.Request{At: at, When: when, Msg: problem.Request([]byte(what))})
	}
	ask(0, 10, "deposit")
	ask(1, 8500, "in ignorance") // when it should have delivered it, and before it can detect the omission
	for id := range parley.ID(n) {
		for k := range 4 {
			ask(id, parley.Tick(5000+9000*k)+parley.Tick(id)*200, fmt.Sprintf("report %d.%d", id, k))
		}
	}
	return sim.Run(opt)
}

// Without the guard all deliver what process 1 broadcasts without knowing of the deposit, and what they
// broadcast from then on is contaminated too (lecture, remarks on broadcasts).
func TestSpreadsWithoutTheGuard(t *testing.T) {
	s := deaf(4, true, 1)
	steps := guard.Spread(&s.History, 2*guard.Time)
	tainted := make(map[parley.ID]bool)
	for _, step := range steps {
		if string(step.Missed) != "deposit" || step.Origin != 0 {
			t.Errorf("%+v: it is the deposit that was missed", step)
		}
		tainted[step.From] = true
	}
	if len(tainted) != 4 {
		t.Errorf("contaminated messages of %v: of everybody in the end", tainted)
	}
	if guard.Clean(2*guard.Time).Check(&s.History) == nil {
		t.Error("the property holds of a run in which contamination spreads")
	}
}

// With the guard nothing spreads, whatever the seed: the others refuse process 1, or it detects its omission
// first and stops.
func TestStopsWithTheGuard(t *testing.T) {
	found := make(map[parley.Kind]int)
	for seed := range uint64(200) {
		s := deaf(4, false, seed)
		if err := guard.Clean(2 * guard.Time).Check(&s.History); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, i := range s.History.Indications {
			found[i.Msg.Kind]++
			if i.Msg.Kind == guard.Behind && i.At != 1 || i.Msg.Kind == guard.Contaminated && i.Msg.Origin != 1 {
				t.Fatalf("seed %d: process %d indicates %+v, and only process 1 missed anything", seed, i.At, i.Msg)
			}
		}
		for _, d := range s.History.Deliveries {
			if d.From == 1 && d.At != 1 && d.When > 5000+2*guard.Time {
				t.Fatalf("seed %d: process %d delivers %s of process 1", seed, d.At, d.Msg.Body)
			}
		}
		// The others continue: none misses a message of another.
		for id := range parley.ID(4) {
			if id == 1 {
				continue
			}
			n := 0
			for _, d := range s.History.Deliveries {
				if d.At == id && d.From != 1 {
					n++
				}
			}
			if n != 13 {
				t.Fatalf("seed %d: process %d delivered %d of 13 messages of the others", seed, id, n)
			}
		}
	}
	if found[guard.Behind] < 50 || found[guard.Contaminated] < 300 {
		t.Errorf("indications: %v", found)
	}
}

// No process is found out while nothing is missed: the guard ignores crashes, and doubled and overtaken
// messages.
func TestLeavesTheRestAlone(t *testing.T) {
	for seed := range uint64(200) {
		p := tower(5, false)
		opt := sim.Options{Protocol: p, Seed: seed, Twice: 0.2}
		opt.Crashes = []sim.Crash{{At: parley.ID(seed % 5), Step: 1 + int(seed%17), Effects: int(seed % 6)}}
		for k := range 20 {
			opt.Requests = append(opt.Requests, sim.Request{
				At: parley.ID(k % 5), When: parley.Tick(1 + 700*k), Msg: problem.Request([]byte(fmt.Sprint("m", k))),
			})
		}
		s := sim.Run(opt)
		parleytest.Judge(t, p, s, seed)
		if len(s.History.Indications) > 0 {
			t.Fatalf("seed %d: %+v", seed, s.History.Indications[0])
		}
	}
}

// Whatever one process omits to send or to receive, and whichever processes crash: nothing is contaminated,
// and no correct process is stopped or found out.
func TestOneOmits(t *testing.T) {
	omitted := uint64(0)
	for seed := range uint64(600) {
		n := 4 + int(seed%3)
		p := tower(n, false)
		bad := parley.ID(seed % uint64(n))
		how := []faulty.Behavior{faulty.SendOmission, faulty.ReceiveOmission, faulty.Silent}[seed%5%3]
		opt := sim.Options{Protocol: p, Seed: seed, Faulty: map[parley.ID]faulty.Behavior{bad: how}}
		for k := range 14 {
			opt.Requests = append(opt.Requests, sim.Request{
				At: parley.ID(uint64(k*k)+seed) % parley.ID(n), When: parley.Tick(1 + 4001*k), Msg: problem.Request([]byte(fmt.Sprint("m", k))),
			})
		}
		s := sim.Run(opt)
		for _, v := range parley.Judge(p, s.RunConditions(), &s.History) {
			if v.Property.Mode != parley.Sometimes && (v.Broken != nil || !v.Promise.Holds) {
				t.Fatalf("seed %d: %s: %v, %s", seed, v.Property.Name, v.Broken, v.Promise.Because)
			}
		}
		for _, i := range s.History.Indications {
			if i.At != bad && (i.Msg.Kind == guard.Behind || i.Msg.Origin != bad) {
				t.Fatalf("seed %d: process %d indicates %+v, and %d is the one that omits", seed, i.At, i.Msg, bad)
			}
			omitted++
		}
	}
	if omitted < 300 {
		t.Errorf("%d processes were found out", omitted)
	}
}

func TestSuite(t *testing.T) {
	parleytest.Suite(t, tower(5, false), parleytest.Options{Seeds: 30, NothingBeyond: "crashes harm nothing"})
}

// What a liar sends is refused and counted.
func TestRefuses(t *testing.T) {
	p := guard.New(guard.Config{N: 3})
	for _, m := range []parley.Msg{{Kind: 1}, {Kind: 1, Body: []byte{1, 1}}, {Kind: 3, Body: []byte{1, 1, 1}},
		{Kind: 2, Body: []byte{1, 1, 1, 7}}} {
		why := ""
		step := parley.Step{Self: 0, N: 3, Carried: true, Host: host{why: &why}}
		p.New(0).Receive(&step, 1, m)
		if !strings.Contains(why, "no message of a guard") || len(step.Effects) > 0 {
			t.Errorf("%+v: refused %q, %d effects", m, why, len(step.Effects))
		}
	}
}

type host struct {
	parley.Host
	why *string
}

func (h host) Refused(_, _ parley.ID, reason string) { *h.why = reason }
