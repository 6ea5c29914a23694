package rsm

import (
	"slices"

	"parley"
)

// If a process may accidentally send wrong messages ([Config].Liars), replicas may diverge: it can send
// different commands to different replicas, give a joiner a false state, or make replicas begin a view with
// different cuts. So at the start of a view all members broadcast what they have, in the order, and answer
// nothing before all have: then all know the same reports. The state that most replicas have is chosen. A
// replica with another state fetches the chosen one, with what was delivered since. The outcome of the
// commands that it has not answered is then unknown.
//
// One missing report would make all wait until the view ends. One accidentally wrong message suffices for
// that, and so does a refused broadcast when too many wait. So a replica asks for the reports that it misses,
// and these are sent again.

// The messages of the comparison, all broadcast.
const (
	// stand is the report of a replica. Seq: the view that begins. Value: the hash of its state. Body: its
	// standing, one byte.
	stand   parley.Kind = done + 1 + iota
	missing             // asks for the report of a replica. Seq: the view. Value: the replica
)

// standing is the weight of a replica's report. Only the reports of the highest standing count.
type standing uint8

const (
	none   standing = iota // has no state, or has stopped
	behind                 // differs from the chosen state, and lacks what was delivered since that was found
	given                  // came from a single sponsor
	held                   // was compared
)

// standingReport is the report of one replica.
type standingReport struct {
	who  parley.ID
	of   standing
	hash uint64
}

// comparison is what a replica knows of the reports at the start of a view.
type comparison struct {
	of      standing // of this replica
	said    []standingReport
	answers []parley.Msg   // wait until this replica's state is the chosen one
	sums    []lateDelivery // hashes of its state that wait likewise: for whom, and the message
}

// chosen returns the standing and the hash of the chosen state: the one that most reports of the highest
// standing have, on a tie that of the lowest ID. It also returns whether a replica has another state.
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
	return of, hash, slices.ContainsFunc(x.said, func(y standingReport) bool { return y.of > none && y.hash != hash })
}

func (x *comparison) State(v *parley.Vars) {
	parley.Num(v, "standing", &x.of)
	parley.Slice(v, "said", &x.said, func(_ int, y *standingReport) {
		v.ID("who", &y.who)
		parley.Num(v, "standing", &y.of)
		parley.Num(v, "hash", &y.hash)
	})
	parley.Slice(v, "answers", &x.answers, func(_ int, m *parley.Msg) { v.Msg("answer", parley.Env{}, m) })
	parley.Slice(v, "sums", &x.sums, func(_ int, y *lateDelivery) {
		v.ID("to", &y.from)
		v.Msg("sum", parley.Env{}, &y.msg)
	})
}

// trustState records whether the state of a replica is the chosen one.
type trustState struct {
	unconfirmed bool        // not compared with any other replica, or not the chosen state
	word        parley.Msg  // its last report
	compares    *comparison // not nil: a view has begun, and not all members have reported
}

// comparing reports whether this replica has a state and does not know yet if it is the chosen one.
func (d *trustState) comparing() bool { return d.compares != nil && d.compares.of > none }

// begin handles a view: it broadcasts the report of this replica. Answers that wait from the previous view
// keep waiting.
func (d *trustState) begin(s *parley.Step, view uint64, of standing, hash uint64, retries parley.Tick) {
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

// unheard returns the members that have not reported.
func (d *trustState) unheard(members parley.Set) parley.Set {
	for _, y := range d.compares.said {
		members.Remove(y.who)
	}
	return members
}

// remind asks for the missing reports, and repeats its own if it has not been delivered.
func (d *trustState) remind(s *parley.Step, members parley.Set) {
	for id := range d.unheard(members).All() {
		if id == s.Self {
			s.Broadcast(d.word)
		} else {
			s.Broadcast(parley.Msg{Kind: missing, Seq: d.word.Seq, Value: uint64(id)})
		}
	}
}

// repeat handles a request for a report.
func (d *trustState) repeat(s *parley.Step, m parley.Msg) {
	if m.Value == uint64(s.Self) && m.Seq == d.word.Seq && !s.Restart {
		s.Broadcast(d.word)
	}
}

// hear handles a replica's report at the start of the view. Only the first report of each member counts. hear
// returns whether it was the last one missing.
func (d *trustState) hear(s *parley.Step, from parley.ID, m parley.Msg, members parley.Set) bool {
	if m.Seq != d.word.Seq || len(m.Body) != 1 || m.Body[0] > byte(held) {
		s.Refuse(from, "word of a copy that nobody waits for")
		return false
	}
	if d.compares == nil || !d.unheard(members).Has(from) {
		return false // a repetition for another process
	}
	d.compares.said = append(d.compares.said, standingReport{from, standing(m.Body[0]), m.Value})
	return d.unheard(members) == parley.Set{}
}

func (d *trustState) State(v *parley.Vars) {
	v.Bool("doubtful", &d.unconfirmed)
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

// standing returns the weight of this replica's report.
func (p *process) standing() standing {
	switch {
	case p.stopped, p.fetch != nil && !p.trust.unconfirmed:
		return none
	case p.fetch != nil:
		return behind
	case p.trust.unconfirmed:
		return given
	}
	return held
}

// begins handles a view.
func (p *process) begins(s *parley.Step, view parley.Msg) {
	if members, rest, err := parley.ReadSet(view.Body, p.c.N); err == nil && len(rest) == 0 {
		p.members = members
	}
	if p.c.Liars == 0 {
		return
	}
	of, hash := p.standing(), uint64(0)
	if of > none {
		if hash = p.hash(); p.fetch != nil { // its state may become the chosen one as it is
			p.fetch = &fetch{held: p.fetch.held}
		}
	}
	p.trust.begin(s, view.Seq, of, hash, p.c.Retry)
}

// settle acts on the complete set of reports. A process whose state is chosen answers; every other process
// fetches that state.
func (p *process) settle(s *parley.Step) {
	x := p.trust.compares
	of, hash, parted := x.chosen()
	switch {
	case of == none || p.stopped:
		p.trust.compares = nil
	case x.of > none && p.trust.word.Value == hash:
		p.counts(s)
	case x.of > none, parted && p.fetch == nil:
		p.part(s)
	default:
		if p.trust.compares = nil; parted && p.fetch.number > 0 {
			p.ask(s) // its fetch may have another state
		}
	}
}

// counts acts on the finding that the state of this replica is the chosen one.
func (p *process) counts(s *parley.Step) {
	x, f := p.trust.compares, p.fetch
	p.trust.compares, p.fetch, p.trust.unconfirmed = nil, nil, false
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

// part acts on the finding that it is not: the replica drops its waiting answers and fetches the chosen state.
func (p *process) part(s *parley.Step) {
	if p.trust.compares != nil {
		for _, y := range p.trust.compares.sums {
			p.offers.drop(y.from)
			lacks(s, y.from, y.msg)
		}
	}
	f := &fetch{}
	if p.fetch != nil {
		f.held = p.fetch.held
	}
	p.trust.compares, p.fetch, p.trust.unconfirmed = nil, f, true
	p.votes = nil
	s.Indicate(parley.Msg{Kind: Parted, Origin: s.Self, Seq: p.position})
	if !s.Restart {
		p.ask(s)
	}
}
