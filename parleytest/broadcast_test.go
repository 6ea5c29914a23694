package parleytest_test

import (
	"slices"
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/parleytest"
	"parley/sim"
)

// relaying is a reliable broadcast written for these tests: a process that receives a message for the first
// time sends it to all others before it delivers it.
func relaying(n int, change func(p *relay)) parley.Protocol {
	return parley.Protocol{
		Name: "relaying", N: n, M: n - 1, Faults: parley.CrashFaults, Kinds: []string{"", "DATA"}, Serves: true,
		New: func(parley.ID) parley.Machine {
			p := &relay{heard: make([][]uint64, n)}
			if change != nil {
				change(p)
			}
			return p
		},
		Properties: problem.Of(problem.Validity, problem.Agreement, problem.Integrity, problem.Delivery),
		Promises: func(a parley.RunConditions) []parley.Promise {
			var out []parley.Promise
			for _, name := range []string{problem.Validity, problem.Agreement, problem.Integrity, problem.Delivery} {
				out = append(out, problem.Promise(a, name, "who delivers has told all others"))
			}
			return out
		},
		Cost: func(n, _ int) parley.Cost {
			return parley.Cost{Rounds: 2, PerRound: []parley.Traffic{{Messages: uint64(n * (n - 1))}}}
		},
		Size: func(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{Messages: 1} },
	}
}

// relay is one process. A message of kind 1 is a broadcast: Origin and Seq identify it, Value is the
// incarnation of its sender and Body the payload.
type relay struct {
	parley.Base
	life     problem.Incarnation
	sent     uint64
	heard    [][]uint64 // by sender: incarnations and numbers
	direct   []uint64   // those received from the sender itself
	mute     bool       // mutant: it forwards nothing
	trusting bool       // mutant: it assumes that links do not duplicate
	timid    bool       // mutant: it ignores messages of suspected processes
	shunned  parley.Set
}

func (p *relay) Start(s *parley.Step) { p.life.Begin(s) }

func (p *relay) Request(s *parley.Step, m parley.Msg) {
	p.sent++
	p.Receive(s, s.Self, parley.Msg{Kind: 1, Origin: s.Self, Seq: p.sent, Value: uint64(p.life), Body: m.Body})
}

func (p *relay) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Kind == parley.Suspect {
		p.shunned.Add(m.Origin)
		return
	}
	if m.Kind != 1 || int(m.Origin) >= s.N || m.Seq > 1<<32 || m.Value > 1<<16 || p.timid && p.shunned.Has(m.Origin) {
		s.Refuse(from, "no broadcast")
		return
	}
	number := uint64(m.Origin)<<56 | m.Value<<32 | m.Seq
	again := slices.Contains(p.direct, number) && p.trusting
	if from == m.Origin {
		p.direct = append(p.direct, number)
	}
	if slices.Contains(p.heard[m.Origin], number) && (!again || from != m.Origin) {
		return
	}
	p.heard[m.Origin] = append(p.heard[m.Origin], number)
	if !p.mute || m.Origin == s.Self {
		s.SendAll(m)
	}
	s.Deliver(m.Origin, parley.Msg{Kind: parley.Carried, Origin: m.Origin, Body: m.Body})
}

func (p *relay) State(v *parley.Vars) {
	p.life.State(v)
	parley.Num(v, "sent", &p.sent)
	v.Set("shunned", &p.shunned)
	parley.Slice(v, "direct", &p.direct, func(_ int, x *uint64) { parley.Num(v, "number", x) })
	parley.PerProcess(v, "heard", p.heard, func(_ parley.ID, list *[]uint64) {
		parley.Slice(v, "of", list, func(_ int, x *uint64) { parley.Num(v, "number", x) })
	})
}

var lossy = parleytest.Options{Seeds: 150, Beyond: []parleytest.Beyond{{
	Protocol: relaying(4, nil), Faulty: 1, Sim: &sim.Options{Loss: 0.5}, Breaks: problem.Agreement,
}}}

// TestBroadcast runs the suite on a broadcast, and on lossy links, on which it must break.
func TestBroadcast(t *testing.T) { parleytest.Suite(t, relaying(4, nil), lossy) }

// broadcastMutants are broadcasts with one fault, and the check that finds it.
func broadcastMutants() []mutant {
	in := func(name, check string, change func(p *relay)) mutant {
		return mutant{name: name, check: check, p: relaying(4, change)}
	}
	promising := relaying(4, nil)
	promising.Promises = func(a parley.RunConditions) []parley.Promise {
		return []parley.Promise{{Property: problem.Agreement, Holds: true, Because: "it is said so"}}
	}
	dear := relaying(4, nil)
	dear.Cost = func(n, _ int) parley.Cost {
		return parley.Cost{Rounds: 2, PerRound: []parley.Traffic{{Messages: uint64(n * n)}}}
	}
	safe := lossy
	safe.Beyond = []parleytest.Beyond{{Protocol: relaying(4, nil), Sim: &sim.Options{Loss: 0.5}, Breaks: problem.Integrity}}
	endless := relaying(4, nil)
	made := endless.New
	endless.New = func(self parley.ID) parley.Machine { return &restless{Machine: made(self)} }
	watched := endless
	watched.Span = 20_000
	return []mutant{
		in("nothing wrong with a broadcast", "", nil),
		in("who hears tells nobody", "promises", func(p *relay) { p.mute = true }),
		in("links are trusted not to double", "crashes", func(p *relay) { p.trusting = true }),
		in("who is suspected is not heard", "faults", func(p *relay) { p.timid = true }),
		{name: "promised whatever the links do", check: "faults", p: promising},
		{name: "a broadcast costs more than that", check: "cost", p: dear},
		{name: "loss breaks agreement and not integrity", check: "beyond", says: "integrity never broke", p: relaying(4, nil), o: safe},
		{name: "it never rests", check: "promises", says: "does not end", p: endless},
		{name: "it never rests, and says so", check: "", p: watched},
	}
}

// restless sets its timer again and again.
type restless struct{ parley.Machine }

func (r *restless) Start(s *parley.Step) {
	r.Machine.Start(s)
	s.SetTimer(77, 500)
}

func (r *restless) Timeout(s *parley.Step, _ parley.Timer) { s.SetTimer(77, 500) }
