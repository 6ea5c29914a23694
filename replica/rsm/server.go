package rsm

import (
	"slices"

	"parley"
)

// server is a replica that has the state: it applies what is delivered, and answers.
type server struct {
	replica
	stopped bool
	own     ownClient
	votes   votes
	trust   trustState
	offers  offers
}

// stop stops a replica that does not have the same state as the others. It answers nothing more.
func (p *server) stop(s *parley.Step, why string) {
	if !p.stopped {
		p.stopped = true // what is in flight may still be applied: it is sent again after rejoining
		s.Indicate(parley.Msg{Kind: Stopped, Origin: s.Self, Seq: p.position, Body: []byte(why)})
	}
}

// brokeOff stops a replica whose application has panicked, and returns whether it did. The state may be half
// changed, so it is neither served nor given to a joiner.
func (p *server) brokeOff(s *parley.Step) bool {
	if p.broke == "" {
		return false
	}
	p.stop(s, p.broke)
	return true
}

// apply handles a command: it applies it unless it was applied before, and answers. It returns whether the
// next own command may follow.
func (p *server) apply(s *parley.Step, from parley.ID, m parley.Msg) (next bool) {
	if !numbered(m.Seq) || isOpened(m.Value) || m.Value >= processes && ownerOf(m.Value) != from {
		s.Refuse(from, "command without a number, or in the name of another")
		return false
	}
	x := p.sessions.of(m.Value)
	switch {
	case m.Seq > x.last:
		p.replica.apply(x, m.Seq, m.Body)
		p.votes.forget(p.position)
		if p.brokeOff(s) {
			return false
		}
	case m.Seq < x.last:
		s.Refuse(from, "command that was answered long ago")
		return false
	}
	answer := parley.Msg{Kind: Answer, Origin: from, Seq: x.at, Value: m.Value, Body: x.answer}
	p.trim()
	own := m.Value == client(s.Self, p.own.life)
	p.answer(s, answer, p.setup.Active.Has(s.Self) && (!own || m.Seq > p.own.done))
	return own && p.own.applied(m.Seq)
}

// pack applies the commands of a pack one after the other, and answers them together.
func (p *server) pack(s *parley.Step, from parley.ID, m parley.Msg) {
	list, ok := readCommands(m.Body)
	if !ok {
		s.Refuse(from, "pack that is none")
		return
	}
	var replies []byte
	for _, x := range list {
		r := p.one(x)
		p.votes.forget(p.position)
		if p.brokeOff(s) {
			return // the requester learns that the replica has stopped
		}
		if replies = appendReply(replies, r); !p.setup.Checked {
			p.everySo(s)
		}
	}
	told := parley.Msg{Kind: Replies, Origin: from, Seq: p.position, Value: m.Seq, Body: replies}
	tell := from == s.Self && p.setup.Active.Has(s.Self)
	if p.setup.Checked {
		p.answer(s, told, tell)
	} else if tell {
		p.say(s, told)
	}
}

// change handles a new setup, which holds for everything after it.
func (p *server) change(s *parley.Step, from parley.ID, body []byte) {
	setup, ok := readSetup(body, p.c.N)
	if !ok || p.c.Liars > 0 {
		s.Refuse(from, "setup that is none, or may be that of a liar")
		return
	}
	p.position++
	p.votes.forget(p.position)
	p.setup = setup
	p.everySo(s)
}

// answer delivers an answer at once, or when enough replicas have the same state. A spare answers nothing, and
// no process answers its own command twice.
func (p *server) answer(s *parley.Step, answer parley.Msg, tell bool) {
	switch {
	case p.setup.Checked:
		v := p.votes.compare(s, &p.replica)
		if tell {
			v.wait(answer)
			p.release(s, v)
		}
		return
	case tell:
		p.say(s, answer)
	}
	p.everySo(s)
}

// everySo compares the states at the positions that Config.Every selects.
func (p *server) everySo(s *parley.Step) {
	if p.c.Every > 0 && p.position%p.c.Every == 0 {
		p.votes.compare(s, &p.replica)
	}
}

// check counts a report. It returns whether this replica's state is wrong.
func (p *server) check(s *parley.Step, from parley.ID, position, hash uint64) (wrong bool) {
	v := p.votes.on(position)
	if v == nil || !v.active.Has(from) || hash == 0 {
		s.Refuse(from, "word of a state that nobody asked for")
		return false
	}
	if !v.count(from, hash) {
		s.Refuse(from, "a second word of one state")
		return false
	}
	p.release(s, v)
	return v.judge(s)
}

// release delivers the confirmed answers.
func (p *server) release(s *parley.Step, v *vote) {
	for _, answer := range v.release() {
		p.say(s, answer)
	}
}

// say delivers an answer, or keeps it until this replica's state is the chosen one.
func (p *server) say(s *parley.Step, answer parley.Msg) {
	if p.trust.comparing() {
		p.trust.compares.answers = append(p.trust.compares.answers, answer)
		return
	}
	s.Deliver(answer.Origin, answer)
}

// keep handles a mark: it saves the present state for the joiner, and sends it the hash.
func (p *server) keep(s *parley.Step, to parley.ID, m parley.Msg) {
	if to == s.Self || p.c.Piece == 0 {
		return
	}
	p.offers.drop(to)
	if len(p.offers) >= mostKept {
		return // the joiner asks again
	}
	o := offer{to, m.Seq, p.save(), s.Now}
	p.offers = append(p.offers, o)
	if p.trust.comparing() { // sent only if this replica's state is chosen
		p.trust.compares.sums = append(p.trust.compares.sums, lateDelivery{to, o.sum()})
	} else {
		s.Send(to, o.sum())
	}
	s.SetTimer(retry, p.c.Retry)
}

// given returns what a sponsor gives to the group.
func (p *server) given() []byte {
	state := p.save()
	switch {
	case p.c.Piece == 0:
		return state
	case len(state) > p.c.Piece:
		return []byte{marked}
	}
	return slices.Concat([]byte{whole}, state)
}
