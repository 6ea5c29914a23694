package rsm

import (
	"slices"

	"parley"
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

// doubt is whether a copy has the state that counts.
type doubt struct {
	doubtful bool        // it has been compared with that of no other, or is not that
	word     parley.Msg  // what it told the others of it
	compares *comparison // not nil: a view has begun, and not all have told what they have
}

// comparing tells whether this copy has a state that may count, and does not know yet.
func (d *doubt) comparing() bool { return d.compares != nil && d.compares.of > none }

// begin is upon a view: tell what this copy is. Answers that wait since the view before wait on.
func (d *doubt) begin(s *parley.Step, view uint64, of standing, hash uint64, retries parley.Tick) {
	x := &comparison{of: of}
	if d.comparing() && of > none {
		x.answers, x.sums = d.compares.answers, d.compares.sums
	}
	d.compares, d.word = x, parley.Msg{Kind: stand, Seq: view, Value: hash, Body: []byte{byte(of)}}
	if !s.Restart {
		s.Broadcast(d.word)
		s.SetTimer(retry, retries)
	}
}

// unheard are the members whose word has not come.
func (d *doubt) unheard(members parley.Set) parley.Set {
	for _, y := range d.compares.said {
		members.Remove(y.who)
	}
	return members
}

// remind asks for the words that have not come; its own it tells again.
func (d *doubt) remind(s *parley.Step, members parley.Set) {
	for id := range d.unheard(members).All() {
		if id == s.Self {
			s.Broadcast(d.word)
		} else {
			s.Broadcast(parley.Msg{Kind: missing, Seq: d.word.Seq, Value: uint64(id)})
		}
	}
}

// repeat is upon being asked for a word.
func (d *doubt) repeat(s *parley.Step, m parley.Msg) {
	if m.Value == uint64(s.Self) && m.Seq == d.word.Seq && !s.Restart {
		s.Broadcast(d.word)
	}
}

// hear is upon word of a copy where the view begins, the first of each. It tells whether that
// is the last one.
func (d *doubt) hear(s *parley.Step, from parley.ID, m parley.Msg, members parley.Set) bool {
	if m.Seq != d.word.Seq || len(m.Body) != 1 || m.Body[0] > byte(held) {
		s.Refuse(from, "word of a copy that nobody waits for")
		return false
	}
	if d.compares == nil || !d.unheard(members).Has(from) {
		return false // it is told again, for another one
	}
	d.compares.said = append(d.compares.said, stood{from, standing(m.Body[0]), m.Value})
	return d.unheard(members) == parley.Set{}
}

// State visits every variable.
func (d *doubt) State(v *parley.Vars) {
	v.Bool("doubtful", &d.doubtful)
	v.Msg("word", parley.Env{}, &d.word)
	comparing := d.compares != nil
	if v.Bool("comparing", &comparing); !comparing {
		d.compares = nil
		return
	}
	if d.compares == nil {
		d.compares = &comparison{}
	}
	v.Machine("comparison", d.compares)
}

// standing tells what this copy is worth.
func (p *process) standing() standing {
	switch {
	case p.stopped, p.fetch != nil && !p.doubt.doubtful:
		return none
	case p.fetch != nil:
		return behind
	case p.doubt.doubtful:
		return given
	}
	return held
}

// begins is upon a view.
func (p *process) begins(s *parley.Step, view parley.Msg) {
	if members, rest, err := parley.ReadSet(view.Body, p.c.N); err == nil && len(rest) == 0 {
		p.members = members
	}
	if p.c.Liars == 0 {
		return
	}
	of, hash := p.standing(), uint64(0)
	if of > none {
		if hash = p.hash(); p.fetch != nil { // it may be needed as it is
			p.fetch = &fetch{held: p.fetch.held}
		}
	}
	p.doubt.begin(s, view.Seq, of, hash, p.c.Retry)
}

// settle is upon the word of the last member. A process whose state is chosen answers; every other
// process fetches that state.
func (p *process) settle(s *parley.Step) {
	x := p.doubt.compares
	of, hash, parted := x.chosen()
	switch {
	case of == none || p.stopped:
		p.doubt.compares = nil
	case x.of > none && p.doubt.word.Value == hash:
		p.counts(s)
	case x.of > none, parted && p.fetch == nil:
		p.part(s)
	default:
		if p.doubt.compares = nil; parted && p.fetch.number > 0 {
			p.ask(s) // what it fetches may be another one
		}
	}
}

// counts is upon finding that the state of this copy is the one that counts.
func (p *process) counts(s *parley.Step) {
	x, f := p.doubt.compares, p.fetch
	p.doubt.compares, p.fetch, p.doubt.doubtful = nil, nil, false
	p.votes.settled()
	if x.of == behind {
		s.Indicate(parley.Msg{Kind: Lacks, Origin: s.Self, Seq: p.position})
	}
	for _, answer := range x.answers {
		s.Deliver(answer.Origin, answer)
	}
	for _, y := range x.sums {
		s.Send(y.from, y.msg)
	}
	if f != nil {
		p.resume(s, f)
	}
}

// part is upon finding that it is not: fetch the other one. The answers of this one are worth
// nothing.
func (p *process) part(s *parley.Step) {
	if p.doubt.compares != nil {
		for _, y := range p.doubt.compares.sums {
			p.offers.drop(y.from)
			lacks(s, y.from, y.msg)
		}
	}
	f := &fetch{}
	if p.fetch != nil {
		f.held = p.fetch.held
	}
	p.doubt.compares, p.fetch, p.doubt.doubtful = nil, f, true
	p.votes = nil
	s.Indicate(parley.Msg{Kind: Parted, Origin: s.Self, Seq: p.position})
	if !s.Restart {
		p.ask(s)
	}
}
