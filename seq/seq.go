// Package seq runs one synchronous protocol after another: first the rounds of protocol A, and then the rounds of
// protocol B. The result of A is the input of B.
//
// Messages do not name their protocol, because the round determines it. B counts its rounds from 0, and its messages
// contain this number in the field Seq. On a link, the frame around a message contains the number of the round in the
// whole sequence. A process may also keep a copy of its own message (Step.Keep). This copy has no frame, so hosts
// know its round only from Seq. When B keeps a copy, this package changes Seq from B's round to the round in the
// whole sequence. When a host later calls Explain or Size for this copy, the package changes Seq back to B's round,
// and calls Explain or Size of B.
package seq

import (
	"fmt"
	"iter"
	"slices"

	"parley"
	"parley/lockstep"
)

// Of runs a, then b. When a process decides in a (a Deliver of kind Decide), its decision becomes its Request of kind
// Propose to b. If it decides several times in a, b determines which decision counts. All other deliveries of a, and
// all deliveries of b, go to the layer above. A Request from above goes to a. The caller sets the properties and
// promises.
func Of(name string, a, b lockstep.Protocol) lockstep.Protocol {
	if a.N != b.N {
		panic(fmt.Sprintf("seq: %s is of a for %d and of b for %d processes", name, a.N, b.N))
	}
	c := pair{a: a, b: b, first: a.Last + 1}
	out := lockstep.Protocol{
		Protocol: parley.Protocol{
			Name:      name,
			Title:     a.Name + ", then " + b.Name,
			Timing:    parley.Synchronous,
			Faults:    min(a.Faults, b.Faults),
			N:         a.N,
			M:         a.M,
			Proposers: a.Proposers,
			Bound:     c.bound,
			Cost:      c.cost,
			Memory:    c.memory,
			Size:      c.size,
			Explain:   c.explain,
			Lies:      c.lies,
			Overhears: a.Overhears || b.Overhears,
		},
		Last: c.first + b.Last,
		New:  func(self parley.ID) lockstep.Rounds { return &process{c, a.New(self), b.New(self)} },
	}
	if a.Rename != nil && b.Rename != nil {
		out.Rename, out.RenameAll = c.rename, c.renameAll
	}
	switch {
	case b.Tree != nil:
		out.Tree = func(r lockstep.Rounds) parley.Tree { return b.Tree(r.(*process).b) }
	case a.Tree != nil:
		out.Tree = func(r lockstep.Rounds) parley.Tree { return a.Tree(r.(*process).a) }
	}
	return out
}

// process is one process, first in a and then in b.
type process struct {
	pair
	a, b lockstep.Rounds
}

func (p *process) Request(s *parley.Step, m parley.Msg) {
	mark := s.Mark()
	p.a.Request(s, m)
	p.passDecisions(s, mark)
}

func (p *process) Emit(s *parley.Step, r int) {
	mark := s.Mark()
	if r < p.first {
		p.a.Emit(s, r)
		p.passDecisions(s, mark)
		return
	}
	p.b.Emit(s, r-p.first)
	for i := range s.Effects[mark:] {
		if e := &s.Effects[mark+i]; e.Op == parley.OpKeep {
			e.Msg.Seq += uint64(p.first)
		}
	}
}

func (p *process) Absorb(s *parley.Step, r int, from parley.ID, m parley.Msg) {
	if r >= p.first {
		p.b.Absorb(s, r-p.first, from, m)
		return
	}
	mark := s.Mark()
	p.a.Absorb(s, r, from, m)
	p.passDecisions(s, mark)
}

func (p *process) Close(s *parley.Step, r int) {
	if r >= p.first {
		p.b.Close(s, r-p.first)
		return
	}
	mark := s.Mark()
	p.a.Close(s, r)
	p.passDecisions(s, mark)
}

// passDecisions makes each decision of a an initial value of b.
func (p *process) passDecisions(s *parley.Step, mark int) {
	for _, e := range lockstep.Delivered(s, mark) {
		if e.Msg.Kind == parley.Decide {
			p.b.Request(s, parley.Msg{Kind: parley.Propose, Body: e.Msg.Body})
		} else {
			s.Effects = append(s.Effects, e)
		}
	}
}

func (p *process) State(v *parley.Vars) {
	v.Inner("first", p.a, p.pair.a.Rename)
	v.Inner("then", p.b, p.pair.b.Rename)
}

// pair is what all processes of one composition share.
type pair struct {
	a, b  lockstep.Protocol
	first int // the first round of B
}

// owner returns the protocol of e's round, and e with the round of that protocol.
func (c pair) owner(e parley.Env) (lockstep.Protocol, parley.Env) {
	if e.Round < c.first {
		return c.a, e
	}
	e.Round -= c.first
	return c.b, e
}

// ownRound returns m as b sent it: an own copy gets b's round back.
func (c pair) ownRound(e parley.Env, m parley.Msg) parley.Msg {
	if e.From == e.To && e.Round >= c.first {
		m.Seq -= uint64(c.first)
	}
	return m
}

func (c pair) size(e parley.Env, m parley.Msg) parley.Traffic {
	p, inside := c.owner(e)
	if p.Size == nil {
		return parley.Traffic{}
	}
	return p.Size(inside, c.ownRound(e, m))
}

func (c pair) explain(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
	p, inside := c.owner(e)
	if p.Explain == nil {
		return func(func(string) bool) {}
	}
	return p.Explain(inside, c.ownRound(e, m), name)
}

// rename is only for messages in frames: an own copy is part of no state.
func (c pair) rename(e parley.Env, m parley.Msg, perm []parley.ID) parley.Msg {
	p, inside := c.owner(e)
	return p.Rename(inside, m, perm)
}

func (c pair) renameAll(e parley.Env, sent []parley.Outgoing, perm []parley.ID) []parley.Outgoing {
	p, inside := c.owner(e)
	return p.Renamed(inside, sent, perm)
}

// lies calls the Lies of the protocol of the turn's round, and shows it only its own part of
// what the coalition has received.
func (c pair) lies(s *parley.Step, t *parley.Turn) []parley.Outgoing {
	p, turn := c.a, *t
	from, until := 0, c.first
	if t.Round >= c.first {
		p, from, until = c.b, c.first, c.first+c.b.Last+1
		turn.Round -= c.first
	}
	if p.Lies == nil {
		return t.Honest
	}
	turn.Seen = func(yield func(parley.Received) bool) {
		for got := range t.Seen {
			if from <= got.Round && got.Round < until {
				got.Round -= from
				if !yield(got) {
					return
				}
			}
		}
	}
	return p.Lies(s, &turn)
}

func (c pair) bound(n, m int) error {
	for _, p := range []lockstep.Protocol{c.a, c.b} {
		if p.Bound != nil {
			if err := p.Bound(n, m); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c pair) cost(n, m int) parley.Cost {
	var sum parley.Cost
	for _, p := range []lockstep.Protocol{c.a, c.b} {
		one := parley.Cost{Rounds: p.Last + 1}
		if p.Cost != nil {
			one = p.Cost(n, m)
		}
		silent := make([]parley.Traffic, sum.Rounds-len(sum.PerRound))
		sum.PerRound = slices.Concat(sum.PerRound, silent, one.PerRound)
		sum.Rounds += one.Rounds
		sum.AtMost = sum.AtMost || one.AtMost
	}
	return sum
}

func (c pair) memory() uint64 {
	var most uint64
	for _, p := range []lockstep.Protocol{c.a, c.b} {
		if p.Memory != nil {
			most += p.Memory()
		}
	}
	return most
}
