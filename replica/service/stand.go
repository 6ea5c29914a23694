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
//
// One word that is missing would have all wait for as long as the view lasts, and one message that
// is wrong by chance is enough for that, or a broadcast that is refused because too many wait. So
// who misses words asks for them, and they are told again.

// The messages of comparing, which are broadcast.
const (
	// stand is the word of a copy. Seq: the view that begins. Value: a hash of the copy. Body: its
	// standing, one byte.
	stand   parley.Kind = done + 1 + iota
	missing             // asks for the word of a copy. Seq: the view. Value: whose
)

// standing is how much the word of a copy weighs. Those of the highest standing decide.
type standing uint8

const (
	none   standing = iota // it has no state, or has stopped
	behind                 // it is not that of the others, and lacks what was delivered since that was found
	given                  // it is on the word of one other process
	held                   // it has been compared
)

// stood is what one copy said.
type stood struct {
	who  parley.ID
	of   standing
	hash uint64
}

// comparison is what a copy knows of the others where a view begins.
type comparison struct {
	of      standing // of this copy
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
	case p.fetch != nil:
		return behind
	case p.doubtful:
		return given
	}
	return held
}

// begins is upon a view: tell what this copy is. Answers that wait since the view before wait on.
func (p *process) begins(s *parley.Step, view parley.Msg) {
	if members, rest, err := problem.ReadSet(view.Body, p.c.N); err == nil && len(rest) == 0 {
		p.members = members
	}
	if p.c.Liars == 0 {
		return
	}
	x := &comparison{of: p.standing()}
	if p.comparing() && x.of > none {
		x.answers, x.sums = p.compares.answers, p.compares.sums
	}
	p.compares, p.word = x, parley.Msg{Kind: stand, Seq: view.Seq, Body: []byte{byte(x.of)}}
	if x.of > none {
		if p.word.Value = p.hash(); p.fetch != nil { // it may be needed as it is
			p.fetch = &fetch{held: p.fetch.held}
		}
	}
	if !s.Restart {
		s.Broadcast(p.word)
		s.SetTimer(retry, p.c.Retry)
	}
}

// waits tells whether this copy waits for words of others.
func (p *process) waits() bool { return p.compares != nil && !p.stopped }

// unheard are the members whose word has not come.
func (p *process) unheard() parley.Set {
	left := p.members
	for _, y := range p.compares.said {
		left.Remove(y.who)
	}
	return left
}

// remind asks for the words that have not come; its own it tells again.
func (p *process) remind(s *parley.Step) {
	for id := range p.unheard().All() {
		if id == s.Self {
			s.Broadcast(p.word)
		} else {
			s.Broadcast(parley.Msg{Kind: missing, Seq: p.word.Seq, Value: uint64(id)})
		}
	}
}

// repeat is upon being asked for a word.
func (p *process) repeat(s *parley.Step, m parley.Msg) {
	if m.Value == uint64(s.Self) && m.Seq == p.word.Seq && !s.Restart {
		s.Broadcast(p.word)
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
	if m.Seq != p.word.Seq || len(m.Body) != 1 || m.Body[0] > byte(held) {
		s.Refuse(from, "word of a copy that nobody waits for")
		return
	}
	if x == nil || !p.unheard().Has(from) {
		return // it is told again, for another one
	}
	x.said = append(x.said, stood{from, standing(m.Body[0]), m.Value})
	if p.unheard() == (parley.Set{}) {
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
	case x.of > none && p.word.Value == hash:
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
	p.settled()
	if x.of == behind {
		s.Indicate(parley.Msg{Kind: Lacks, Origin: s.Self, Seq: p.position})
	}
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

// settled ends the votes on states before, but for those which answers wait for: if they went against
// a copy that counts, nobody might be left with a state.
func (p *process) settled() {
	p.votes = slices.DeleteFunc(p.votes, func(v vote) bool { return len(v.answers) == 0 })
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
	p.votes = nil
	s.Indicate(parley.Msg{Kind: Parted, Origin: s.Self, Seq: p.position})
	if !s.Restart {
		p.ask(s)
	}
}

// compareState visits what there is of all this.
func (p *process) compareState(v *parley.Vars) {
	v.Bool("doubtful", &p.doubtful)
	v.Msg("word", parley.Env{}, &p.word)
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
	parley.Num(v, "standing", &x.of)
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
