package group

import (
	"encoding/binary"

	"parley"
	"parley/agreement/ballot"
)

// stage is what a process is.
type stage uint8

const (
	joining stage = iota
	member
	out // for ever, unless it returns as a new incarnation
)

// voter is what every process is, in a view or not: it votes on how the last view that it
// knows of ends, and tells others how that came about. A process that leaves the view forgets
// all but this.
type voter struct {
	c     *Config
	now   parley.Tick // scratch: of the present clause
	stage stage
	own   joinCandidate // this process: the disk, or memory, is 1 of a first member

	// Of the view.
	roster
	founding []byte      // the decision that made it, for those who missed it
	entered  parley.Tick // when this process entered it
	claims   claims      // of later ones
	steady   bool        // with Liars: it has been a member since it last came back
	ballot   *ballot.Instance
	owner    ballot.Owner
}

// adopt: this is now the last view that the process knows of.
func (p *voter) adopt(d decision, founding []byte) {
	p.renamed(d)
	p.roster, p.founding = d.next, founding
	p.newBallot()
}

// newBallot begins the instance that ends the view. All processes vote, in the view or
// not, so that any two majorities share one, whatever views have been decided on.
func (p *voter) newBallot() {
	p.ballot = ballot.NewInstance(p.own.id, parley.Everyone(p.c.N), p.owner)
	if p.c.Liars > 0 {
		p.ballot.Strict()
	}
}

// vote lets the ballot make a step. What it sends is of the view that it ends.
func (p *voter) vote(s *parley.Step, clause func(*ballot.Instance)) {
	mark, number := s.Mark(), p.view.Number
	clause(p.ballot)
	s.Take(mark, func(e *parley.Effect) bool {
		if e.Op == parley.OpSend && e.Epoch == 0 {
			e.Epoch = uint32(number)
		}
		// A process that does not go on from its log needs no records.
		return e.Op == parley.OpAppend && e.Path == 0 && !p.c.Durable
	})
}

// send sends a message of the group's own, as of a view.
func send(s *parley.Step, view uint64, to parley.ID, m parley.Msg) {
	s.At(0, uint32(view), func() { s.Send(to, m) })
}

// inquire asks, once in a period, what ended the view.
func (p *voter) inquire(s *parley.Step, from parley.ID) {
	if p.claims.ask(from) {
		send(s, p.view.Number, from, parley.Msg{Kind: Ask})
	}
}

// askAgain begins a period: those who say that there is a later view are asked again.
func (p *voter) askAgain(s *parley.Step) {
	for id := range p.claims.again(p.view.Number).All() {
		p.inquire(s, id)
	}
}

// believes tells whether a process is to be believed how a view came about. Otherwise all are asked.
func (p *voter) believes(s *parley.Step, from parley.ID, view uint64, value []byte) bool {
	if p.claims.believes(from, view, value) {
		return true
	}
	for id := range parley.ID(p.c.N) {
		if id != p.own.id {
			p.inquire(s, id)
		}
	}
	return false
}

// late is a message of an earlier view. A process that does not know of this one is told
// how it came about: send DECIDE(v-1, founding decision). A member of the view before
// enters it by that, any other process votes on its end then. What it was asked when it
// could not vote it is asked again.
func (p *voter) late(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Kind != ballot.Prepare && m.Kind != ballot.Accept && m.Kind != Beat && m.Kind != Ask {
		return
	}
	// A beat of one who was told a moment ago may have crossed that, and what a member says
	// of a view longer ago was long on its way.
	last := uint64(s.Epoch)+1 == p.view.Number
	if p.founding == nil || m.Kind == Beat && p.now-p.entered < p.c.Detector.Timeout ||
		!last && m.Kind != Ask && p.view.Members.Has(from) {
		return
	}
	p.foundingTo(s, from)
	if m.Kind == Ask {
		p.vote(s, func(b *ballot.Instance) { b.Repeat(s, from) })
	}
}

// foundingTo tells a process how this view came about: the decision of the view before.
func (p *voter) foundingTo(s *parley.Step, to parley.ID) {
	send(s, p.view.Number-1, to, parley.Msg{Kind: ballot.Decision, Body: p.founding})
}

// correct tells a process how the view came about if its request to join looks older than its namesake in
// the view. A liar may have asked in its name, with a later disk. A process that has lost everything does not
// know that number; once it knows it, it takes a higher one.
func (p *voter) correct(s *parley.Step, j parley.ID) {
	if p.c.Liars > 0 && p.founding != nil {
		p.foundingTo(s, j)
	}
}

// catchUp is upon coming to a view by what others said: they are asked again, for what they
// sent of that view before they were believed was dropped, and a ballot may be under way.
func (p *voter) catchUp(s *parley.Step) {
	for id := range p.claims.who(p.view.Number, p.founding).All() {
		send(s, p.view.Number, id, parley.Msg{Kind: Ask})
	}
}

// teller returns a member of the view that said how it came about before this process knew.
func (p *voter) teller() (id parley.ID, found bool) {
	for id := range p.claims.who(p.view.Number, p.founding).All() {
		if p.view.Members.Has(id) {
			return id, true
		}
	}
	return 0, false
}

// blank is for a process that knows nothing of what it was. Its votes do not count before it
// has been let in.
func (p *voter) blank(s *parley.Step) { p.own.disk, p.own.life = 2+s.Life, s.Life }

// remember makes durable who the process is.
func (p *voter) remember(s *parley.Step) {
	if p.c.Durable {
		s.Append(binary.AppendUvarint(binary.AppendUvarint([]byte{lifeKind}, p.own.disk), p.own.life))
	}
}

// renamed is upon a view in which the votes of another disk count for this process, that it never
// asked with. As it has been a member since it came back, and its own counted, no other process has
// that disk: a liar has said so, and without this process there may be no majority. So it goes by
// that name. One that came back and was no member since may be an old copy, and does not.
func (p *voter) renamed(d decision) {
	if now, then := p.disks[p.own.id], d.next.disks[p.own.id]; p.steady && now == p.own.disk && then > p.own.disk {
		p.own.disk = then
	}
}

// outnumber takes the next incarnation, above the one that others take for this process's: a
// liar may have said that it is in a view.
func (p *voter) outnumber() {
	p.own.life++
	if p.c.Liars == 0 {
		return
	}
	known := p.at(p.own.id)
	if known.disk > p.own.disk {
		p.own.disk = known.disk + 1
	}
	p.own.life = max(p.own.life, known.life+1)
}

// misnamed tells whether the last view that this process knows of takes its requests to join for old ones. One
// that names it as it asked has let it in, and INSTALL is on its way.
func (p *voter) misnamed() bool { return p.c.Liars > 0 && p.at(p.own.id).after(p.own) }
