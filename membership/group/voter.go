package group

import (
	"encoding/binary"

	"parley"
	"parley/agreement/ballot"
)

// stage is the role of a process.
type stage uint8

const (
	joining stage = iota
	member
	out // for good, unless it rejoins as a new incarnation
)

// voter is the part of every process, in a view or not: it votes on how the last view that it knows ends, and
// informs others how that view came about. A process that leaves the view keeps only this.
type voter struct {
	c     *Config
	now   parley.Tick // scratch: the time of the present step
	stage stage
	own   joinCandidate // this process; the disk of a first member (or its memory) is 1

	// About the view.
	roster
	founding []byte      // the decision that made the view, for processes that missed it
	entered  parley.Tick // when this process entered the view
	claims   claims      // about later views
	steady   bool        // with Liars: it has been a member since its last restart
	ballot   *ballot.Instance
	owner    ballot.Owner
}

// adopt makes d.next the last view that the process knows.
func (p *voter) adopt(d decision, founding []byte) {
	p.renamed(d)
	p.roster, p.founding = d.next, founding
	p.newBallot()
}

// newBallot begins the instance that ends the view. All processes vote, in the view or not, so that any two
// majorities share one, whatever views have been decided on.
func (p *voter) newBallot() {
	p.ballot = ballot.NewInstance(p.own.id, parley.Everyone(p.c.N), p.owner)
	if p.c.Liars > 0 {
		p.ballot.Strict()
	}
}

// vote runs a clause of the ballot. Messages of the ballot carry the number of the view that it ends.
func (p *voter) vote(s *parley.Step, clause func(*ballot.Instance)) {
	mark, number := s.Mark(), p.view.Number
	clause(p.ballot)
	s.Take(mark, func(e *parley.Effect) bool {
		if e.Op == parley.OpSend && e.Epoch == 0 {
			e.Epoch = uint32(number)
		}
		// A process that does not resume from its log needs no records.
		return e.Op == parley.OpAppend && e.Path == 0 && !p.c.Durable
	})
}

// send sends a message of the group itself in a view.
func send(s *parley.Step, view uint64, to parley.ID, m parley.Msg) {
	s.At(0, uint32(view), func() { s.Send(to, m) })
}

// inquire asks, once in a period, what ended the view.
func (p *voter) inquire(s *parley.Step, from parley.ID) {
	if p.claims.ask(from) {
		send(s, p.view.Number, from, parley.Msg{Kind: DecisionQuery})
	}
}

// askAgain begins a period: it asks again the processes that say that there is a later view.
func (p *voter) askAgain(s *parley.Step) {
	for id := range p.claims.again(p.view.Number).All() {
		p.inquire(s, id)
	}
}

// believes reports whether to believe what a process says about how a view came about. If not, it asks all.
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

// late handles a message of an earlier view. It informs a process that does not know this view how it came
// about: send DECIDE(v-1, founding decision). A member of the previous view enters the view by that; any
// other process then votes on its end. An asking process also receives again what it could not vote on
// before.
func (p *voter) late(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Kind != ballot.Prepare && m.Kind != ballot.Accept && m.Kind != Beat && m.Kind != DecisionQuery {
		return
	}
	// A heartbeat of a process that was informed a moment ago may have crossed that message, and a member's
	// message of a view before the previous one was long in transit.
	last := uint64(s.Epoch)+1 == p.view.Number
	if p.founding == nil || m.Kind == Beat && p.now-p.entered < p.c.Detector.Timeout ||
		!last && m.Kind != DecisionQuery && p.view.Members.Has(from) {
		return
	}
	p.sendFounding(s, from)
	if m.Kind == DecisionQuery {
		p.vote(s, func(b *ballot.Instance) { b.Repeat(s, from) })
	}
}

// sendFounding sends a process the decision that made this view.
func (p *voter) sendFounding(s *parley.Step, to parley.ID) {
	send(s, p.view.Number-1, to, parley.Msg{Kind: ballot.Decision, Body: p.founding})
}

// correct informs a process how the view came about if its request to join looks older than the incarnation
// in the view. A liar may have asked in its name, with a later disk. A process that has lost everything does
// not know that number; once it does, it takes a higher one.
func (p *voter) correct(s *parley.Step, j parley.ID) {
	if p.c.Liars > 0 && p.founding != nil {
		p.sendFounding(s, j)
	}
}

// catchUp asks again the processes whose claims led to this view: what they sent in it before they were
// believed was dropped, and a ballot may be in progress.
func (p *voter) catchUp(s *parley.Step) {
	for id := range p.claims.who(p.view.Number, p.founding).All() {
		send(s, p.view.Number, id, parley.Msg{Kind: DecisionQuery})
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

// blank gives a new identity to a process that has lost its own. Its votes do not count until a view has
// admitted it.
func (p *voter) blank(s *parley.Step) { p.own.disk, p.own.life = 2+s.Life, s.Life }

// remember makes the identity of the process durable.
func (p *voter) remember(s *parley.Step) {
	if p.c.Durable {
		s.Append(binary.AppendUvarint(binary.AppendUvarint([]byte{lifeKind}, p.own.disk), p.own.life))
	}
}

// renamed handles a view that counts, for this process, the votes of a disk that it never asked with. It has
// been a member since its last restart, and its own disk counted, so no other process has that disk: a liar
// claimed it, and without this process there may be no majority. So the process takes that disk number. A
// process that restarted and was no member since may run on an old copy of its disk, and does not.
func (p *voter) renamed(d decision) {
	if now, then := p.disks[p.own.id], d.next.disks[p.own.id]; p.steady && now == p.own.disk && then > p.own.disk {
		p.own.disk = then
	}
}

// outnumber takes the next incarnation, greater than the one that others ascribe to this process: a liar may
// have said that it is in a view.
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

// misnamed reports whether the last view that this process knows makes its requests to join look old. A view
// that names the incarnation that it asked with has admitted it, and INSTALL is in transit.
func (p *voter) misnamed() bool { return p.c.Liars > 0 && p.at(p.own.id).after(p.own) }
