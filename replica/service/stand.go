package service

import (
	"slices"

	"parley"
	"parley/broadcast/problem"
)

// Where a process may say by chance what is wrong ([Config].Liars), copies may differ: it can tell
// them different commands, give one that joins a false state, or have them begin a view with
// different cuts. So all members tell what they have where a view begins, in messages of the order,
// and answer nothing before all have: then all know the same. The copy that most have counts, and
// who has another one fetches it, with what came since. Of what it has not answered the outcome is
// then unknown.

// stand, broadcast where a view begins. Seq: the view. Value: a hash of the copy. Body: its standing, one byte.
const stand parley.Kind = done + 1

// standing is how much the word of a copy weighs. Those of the highest standing decide.
type standing uint8

const (
	none  standing = iota // it has no state, or has stopped
	given                 // the state is on the word of one other process, or is not that of the others
	held                  // it has been compared
)

// stood is what one copy said.
type stood struct {
	who  parley.ID
	of   standing
	hash uint64
}

// comparison is what a copy knows of the others where a view begins.
type comparison struct {
	view    uint64
	of      standing // of this copy
	hash    uint64
	said    []stood
	answers []parley.Msg // that wait until it is known that this copy counts
	sums    []late       // and words of its state to joiners: to whom, and what
}

// comparing tells whether this copy has a state that may count, and does not know yet.
func (p *process) comparing() bool { return p.compares != nil && p.compares.of > none }

// standing tells what this copy is worth.
func (p *process) standing() standing {
	switch {
	case p.stopped, p.fetch != nil && !p.doubtful:
		return none
	case p.doubtful:
		return given
	}
	return held
}

// begins is upon a view: tell what this copy is. Answers that wait since the view before wait on.
func (p *process) begins(s *parley.Step, view uint64) {
	if p.c.Liars == 0 {
		return
	}
	x := &comparison{view: view, of: p.standing()}
	if p.comparing() && x.of > none {
		x.answers, x.sums = p.compares.answers, p.compares.sums
	}
	if p.compares = x; x.of > none {
		if x.hash = p.hash(); p.fetch != nil { // it may be needed as it is
			p.fetch = &fetch{held: p.fetch.held}
		}
	}
	if !s.Restart {
		s.Broadcast(parley.Msg{Kind: stand, Seq: view, Value: x.hash, Body: []byte{byte(x.of)}})
	}
}

// knows takes down who is in a view.
func (p *process) knows(view parley.Msg) {
	if members, rest, err := problem.ReadSet(view.Body, p.c.N); err == nil && len(rest) == 0 {
		p.members = members
	}
}

// say delivers an answer, or keeps it until it is known that this copy counts.
func (p *process) say(s *parley.Step, answer parley.Msg) {
	if p.comparing() {
		p.compares.answers = append(p.compares.answers, answer)
		return
	}
	s.Deliver(answer.Origin, answer)
}

// stands is upon word of a copy where the view begins, the first of each.
func (p *process) stands(s *parley.Step, from parley.ID, m parley.Msg) {
	x := p.compares
	if x == nil || m.Seq != x.view || len(m.Body) != 1 || m.Body[0] > byte(held) ||
		slices.ContainsFunc(x.said, func(y stood) bool { return y.who == from }) {
		s.Refuse(from, "word of a copy that nobody waits for")
		return
	}
	x.said = append(x.said, stood{from, standing(m.Body[0]), m.Value})
	missing := p.members
	for _, y := range x.said {
		missing.Remove(y.who)
	}
	if missing == (parley.Set{}) {
		p.settle(s)
	}
}

// chosen returns which of the copies counts: that which most have of those of the highest
// standing, and of several the one of the process with the lowest id. It tells whether there is
// another one.
func (x *comparison) chosen() (of standing, hash uint64, parted bool) {
	for _, y := range x.said {
		of = max(of, y.of)
	}
	voices, least := 0, parley.ID(0)
	for _, y := range x.said {
		n, first := 0, y.who
		for _, z := range x.said {
			if z.of == of && z.hash == y.hash {
				n, first = n+1, min(first, z.who)
			}
		}
		if y.of == of && (n > voices || n == voices && first < least) {
			voices, least, hash = n, first, y.hash
		}
	}
	return of, hash, slices.ContainsFunc(x.said, func(y stood) bool { return y.of > none && y.hash != hash })
}

// settle is upon the word of the last member. A process whose state is chosen answers; every other
// process fetches that state.
func (p *process) settle(s *parley.Step) {
	x := p.compares
	of, hash, parted := x.chosen()
	switch {
	case of == none || p.stopped:
		p.compares = nil
	case x.of > none && x.hash == hash:
		p.counts(s)
	case x.of > none, parted && p.fetch == nil:
		p.part(s)
	default:
		if p.compares = nil; parted && p.fetch.number > 0 {
			p.ask(s) // what it fetches may be another one
		}
	}
}

// counts is upon finding that the state of this copy is the one that counts.
func (p *process) counts(s *parley.Step) {
	x, f := p.compares, p.fetch
	p.compares, p.fetch, p.doubtful = nil, nil, false
	for _, answer := range x.answers {
		s.Deliver(answer.Origin, answer)
	}
	for _, y := range x.sums {
		s.Send(y.from, y.msg)
	}
	if f == nil {
		return
	}
	for _, m := range f.held {
		p.Request(s, m)
	}
	p.next(s)
}

// part is upon finding that it is not: fetch the other one. The answers of this one are worth
// nothing.
func (p *process) part(s *parley.Step) {
	if p.compares != nil {
		for _, y := range p.compares.sums {
			p.drop(y.from)
			p.without(s, y.from, y.msg)
		}
	}
	f := &fetch{}
	if p.fetch != nil {
		f.held = p.fetch.held
	}
	p.compares, p.fetch, p.doubtful = nil, f, true
	s.Indicate(parley.Msg{Kind: Parted, Origin: s.Self, Seq: p.position})
	if !s.Restart {
		p.ask(s)
	}
}

// compareState visits what there is of all this.
func (p *process) compareState(v *parley.Vars) {
	v.Bool("doubtful", &p.doubtful)
	comparing := p.compares != nil
	if v.Bool("comparing", &comparing); !comparing {
		p.compares = nil
		return
	}
	if p.compares == nil {
		p.compares = &comparison{}
	}
	v.Machine("comparison", p.compares)
}

func (x *comparison) State(v *parley.Vars) {
	parley.Num(v, "view", &x.view)
	parley.Num(v, "standing", &x.of)
	parley.Num(v, "hash", &x.hash)
	parley.Slice(v, "said", &x.said, func(_ int, y *stood) {
		v.ID("who", &y.who)
		parley.Num(v, "standing", &y.of)
		parley.Num(v, "hash", &y.hash)
	})
	parley.Slice(v, "answers", &x.answers, func(_ int, m *parley.Msg) { v.Msg("answer", parley.Env{}, m) })
	parley.Slice(v, "sums", &x.sums, func(_ int, y *late) {
		v.ID("to", &y.from)
		v.Msg("sum", parley.Env{}, &y.msg)
	})
}
