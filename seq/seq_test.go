package seq_test

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/om"
	"parley/agreement/phaseking"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/lockstep"
	"parley/parleytest"
	"parley/seq"
	"parley/sim"
	"parley/trace"
)

const n = 4

func instance(source parley.ID) problem.Instance {
	return problem.Instance{N: n, M: 1, Source: source, Default: []byte("0")}
}

func king() lockstep.Protocol {
	return phaseking.Rounds(phaseking.Config{Instance: instance(0)})
}

func propose(values []string) []sim.Request {
	var out []sim.Request
	for i, v := range values {
		out = append(out, sim.Request{At: parley.ID(i), Msg: parley.Msg{Kind: parley.Propose, Body: []byte(v)}})
	}
	return out
}

// script is a behavior whose lies depend only on round, receiver and place. Its
// rounds count from first, so that it can lie in the same way in a part that
// runs alone.
func script(first uint64) faulty.Behavior {
	return faulty.Behavior{Name: "script", Choose: func(_ *parley.Step, t *parley.Turn, k, n int) int {
		round := first + t.Honest[0].Msg.Seq
		return int((round*31 + uint64(t.To)*7 + uint64(k) + 1) * 0x9E3779B97F4A7C15 >> 40 % uint64(n))
	}}
}

// run runs a protocol and returns what every process decided, including the faulty
// process's honest copy.
func run(p lockstep.Protocol, seed, first uint64, values []string) ([]string, *sim.Sim) {
	decided := make([]string, n)
	p = lockstep.Derive(p, p.Name, func(s *parley.Step, from parley.ID, m parley.Msg) {
		decided[s.Self] = string(m.Body)
		s.Deliver(from, m)
	})
	opt := sim.Options{Protocol: lockstep.Of(p, lockstep.Simulated), Seed: seed, Requests: propose(values), Measure: true}
	if seed%2 == 1 {
		opt.Faulty = map[parley.ID]faulty.Behavior{parley.ID(seed / 2 % n): script(first)}
	}
	return decided, sim.Run(opt)
}

func sent(s *sim.Sim, p lockstep.Protocol) []parley.Traffic {
	return append(slices.Clone(s.Stats.Sent), make([]parley.Traffic, p.Last+1-len(s.Stats.Sent))...)
}

// B after A decides what B alone decides on the decisions of A alone, with
// the same lies, and sends what both send.
func TestIsBOnResultOfA(t *testing.T) {
	parts := []lockstep.Protocol{
		king(), eig.Rounds(instance(1)), om.Rounds(instance(2)),
		seq.Of("seq", eig.Rounds(instance(3)), king()), seq.Of("seq", king(), eig.Rounds(instance(0))),
	}
	decided := make(map[string]int)
	for _, a := range parts {
		for _, b := range parts {
			both := seq.Of("both", a, b)
			if both.Last != a.Last+b.Last+1 {
				t.Errorf("%s: the last round is %d", both.Title, both.Last)
			}
			for seed := range uint64(32) {
				values := strings.Split(fmt.Sprintf("%04b", seed/2), "")
				after, runA := run(a, seed, 0, values)
				want, runB := run(b, seed, uint64(a.Last)+1, after)
				got, whole := run(both, seed, 0, values)
				if !slices.Equal(got, want) {
					t.Fatalf("%s, seed %d: decided %q, and one by one %q, then %q", both.Title, seed, got, after, want)
				}
				if want := slices.Concat(sent(runA, a), sent(runB, b)); !slices.Equal(sent(whole, both), want) {
					t.Fatalf("%s, seed %d: sent %v, one by one %v", both.Title, seed, sent(whole, both), want)
				}
				if refused := fmt.Sprint(whole.Stats.Refused); refused != "map[]" {
					t.Fatalf("%s, seed %d: refused %s", both.Title, seed, refused)
				}
				decided[fmt.Sprint(got)]++
			}
			ca, cb, cost := a.Cost(n, 1), b.Cost(n, 1), both.Cost(n, 1)
			if cost.Rounds != ca.Rounds+cb.Rounds || !slices.Equal(cost.PerRound, slices.Concat(ca.PerRound, cb.PerRound)) ||
				cost.AtMost != (ca.AtMost || cb.AtMost) {
				t.Errorf("%s costs %v, and its parts %v and %v", both.Title, cost, ca, cb)
			}
		}
	}
	if len(decided) < 4 {
		t.Errorf("all runs decide %v", decided)
	}
}

// Own copies are counted and shown in the round of the whole in which they were
// kept, however deep the protocol that kept them is nested.
func TestOwnCopies(t *testing.T) {
	deep := seq.Of("outer", king(), seq.Of("inner", king(), eig.Rounds(instance(0))))
	p := lockstep.Of(deep, lockstep.Simulated)
	log := &trace.Log{Keep: true}
	sim.Run(sim.Options{Protocol: p, Requests: propose([]string{"1", "1", "1", "1"}), Log: log})
	name := func(id parley.ID) string { return id.String() }
	kept := 0
	for _, e := range log.Events {
		if e.Op != trace.Keep {
			continue
		}
		kept++
		env := parley.Env{From: e.At, To: e.Peer, Path: e.Path}
		rows := slices.Collect(p.Explain(env, e.Msg, name))
		if want := fmt.Sprintf("{1,0%d}", e.At); e.Msg.Seq != uint64(deep.Last) || !slices.Equal(rows, []string{want}) {
			t.Errorf("process %d keeps %q of round %d, want %s of round %d", e.At, rows, e.Msg.Seq, want, deep.Last)
		}
		if size := p.Size(env, e.Msg); size != (parley.Traffic{Messages: 1, Bits: 1 + 2*2}) {
			t.Errorf("the copy of process %d is %v", e.At, size)
		}
	}
	if kept != n-1 {
		t.Errorf("%d copies kept, want one of each lieutenant", kept)
	}
}

// Lies are those of the protocol that the round belongs to, with that protocol's rounds,
// and see only what was received in it.
func TestLies(t *testing.T) {
	asked := ""
	spy := func(name string, last int) lockstep.Protocol {
		p := om.Rounds(instance(0))
		p.Last = last
		p.Lies = func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
			asked += fmt.Sprintf("%s in %d sees", name, t.Round)
			for got := range t.Seen {
				asked += fmt.Sprintf(" %d:%s", got.Round, got.Msg.Body)
			}
			return t.Honest[:1]
		}
		return p
	}
	p := seq.Of("three", spy("A", 1), seq.Of("two", spy("B", 0), spy("C", 2)))
	var seen []parley.Received
	for r := range p.Last + 1 {
		seen = append(seen, parley.Received{Round: r, Msg: parley.Msg{Body: fmt.Appendf(nil, "r%d", r)}})
	}
	for round, want := range []string{
		"A in 0 sees 0:r0 1:r1", "A in 1 sees 0:r0 1:r1", "B in 0 sees 0:r2",
		"C in 0 sees 0:r3 1:r4 2:r5", "C in 1 sees 0:r3 1:r4 2:r5", "C in 2 sees 0:r3 1:r4 2:r5",
	} {
		asked = ""
		turn := &parley.Turn{Round: round, Seen: slices.Values(seen), Honest: make([]parley.Outgoing, 2)}
		if said := p.Lies(nil, turn); asked != want || len(said) != 1 {
			t.Errorf("in round %d: %s, want %s", round, asked, want)
		}
		if turn.Round != round {
			t.Errorf("the turn of round %d is now of round %d", round, turn.Round)
		}
	}
}

// Deliveries of A other than decisions go up, and so do all deliveries of B; a
// Request goes to A.
func TestDeliveries(t *testing.T) {
	tell := func(name string) lockstep.Protocol {
		return lockstep.Protocol{
			Protocol: parley.Protocol{Name: name, N: n, Proposers: parley.Everyone(n)},
			Last:     1,
			New:      func(parley.ID) lockstep.Rounds { return &teller{name: name} },
		}
	}
	p := lockstep.Of(seq.Of("tell", tell("A"), tell("B")), lockstep.Simulated)
	s := sim.Run(sim.Options{Protocol: p, Requests: propose([]string{"w", "x", "y", "z"})})
	var got []string
	for _, d := range s.History.Deliveries {
		if d.At == 1 {
			got = append(got, fmt.Sprintf("%d:%#x:%s", d.When/1000, d.Msg.Kind, d.Msg.Body))
		}
	}
	// At the ends of its rounds 0 and 1 each part delivers its name and round. In round 1
	// it also decides on its name followed by its initial value.
	want := []string{"1:0x7:A0", "2:0x7:A1", "3:0x7:B0", "4:0x83:BAx", "4:0x7:B1"}
	if !slices.Equal(got, want) {
		t.Errorf("delivered %q, want %q", got, want)
	}
	b := tell("B")
	b.N++
	if !parleytest.Panics(func() { seq.Of("uneven", tell("A"), b) }) {
		t.Error("protocols for different numbers of processes go on with each other")
	}
}

type teller struct{ name, asked string }

func (p *teller) Request(_ *parley.Step, m parley.Msg)            { p.asked = p.name + string(m.Body) }
func (p *teller) Emit(*parley.Step, int)                          {}
func (p *teller) Absorb(*parley.Step, int, parley.ID, parley.Msg) {}
func (p *teller) Close(s *parley.Step, r int) {
	if r == 1 {
		s.Deliver(s.Self, parley.Msg{Kind: parley.Decide, Body: []byte(p.asked)})
	}
	s.Deliver(s.Self, parley.Msg{Kind: 7, Body: fmt.Appendf(nil, "%s%d", p.name, r)})
}
func (p *teller) State(v *parley.Vars) {
	b := []byte(p.asked)
	v.Bytes("asked", &b)
	p.asked = string(b)
}

// The tree is the tree of the last part that has one.
func TestTree(t *testing.T) {
	for _, test := range []struct {
		p    lockstep.Protocol
		root []parley.ID
	}{
		{seq.Of("", eig.Rounds(instance(2)), king()), []parley.ID{2}},
		{seq.Of("", king(), eig.Rounds(instance(3))), []parley.ID{3}},
		{seq.Of("", om.Rounds(instance(1)), eig.Rounds(instance(3))), []parley.ID{3}},
	} {
		if root := test.p.Tree(test.p.New(0)).Root(); !slices.Equal(root, test.root) {
			t.Errorf("%s: the root is %v, want %v", test.p.Title, root, test.root)
		}
	}
	if seq.Of("", king(), king()).Tree != nil {
		t.Error("two protocols without a tree have one")
	}
}

// Parts without Size, Explain and the like have none in the whole.
func TestDumbParts(t *testing.T) {
	dumb := king()
	dumb.Explain, dumb.Size, dumb.Lies, dumb.Rename, dumb.Cost, dumb.Bound = nil, nil, nil, nil, nil, nil
	p := seq.Of("dumb", dumb, dumb)
	var rows iter.Seq[string] = p.Explain(parley.Env{}, parley.Msg{}, nil)
	if len(slices.Collect(rows)) > 0 || p.Size(parley.Env{}, parley.Msg{}) != (parley.Traffic{}) || p.Rename != nil ||
		p.Bound(1, 1) != nil || p.Cost(n, 1).Rounds != p.Last+1 {
		t.Error("something is said")
	}
	honest := []parley.Outgoing{{Path: 3}}
	if said := p.Lies(nil, &parley.Turn{Honest: honest}); len(said) != 1 {
		t.Error("who knows no lies does not tell the truth")
	}
}

func TestSuite(t *testing.T) {
	p := seq.Of("both", eig.Rounds(instance(1)), seq.Of("inner", king(), eig.Rounds(instance(2))))
	p.Properties = problem.Consensus()[2:] // termination and integrity
	parleytest.Suite(t, lockstep.Of(p, lockstep.Simulated), parleytest.Options{
		Seeds: 100, NothingBeyond: "the rounds end by the clock",
	})
}
