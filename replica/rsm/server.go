package rsm

import (
	"slices"

	"parley"
)

// server is a copy that has the state: it applies what comes in the order, and answers.
type server struct {
	replica
	stopped bool
	own     own
	votes   votes
	doubt   doubt
	offers  offers
}

// stop: who does not have the state that the others have answers nothing.
func (p *server) stop(s *parley.Step, why string) {
	if !p.stopped {
		p.stopped = true // what it has under way may be applied: it asks that again if it is back
		s.Indicate(parley.Msg{Kind: Stopped, Origin: s.Self, Seq: p.position, Body: []byte(why)})
	}
}

// brokeOff stops a copy whose application has panicked, and tells whether it did. Whatever it
// had changed by then, the state is not served nor given to anybody.
func (p *server) brokeOff(s *parley.Step) bool {
	if p.broke == "" {
		return false
	}
	p.stop(s, p.broke)
	return true
}

// apply: upon a command, apply it unless it has been, and answer. It tells whether the next
// one of its own may follow.
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

// pack: upon a pack, apply its commands one after the other, and answer them together.
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
			return // who asked is told that the copy has stopped
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

// change: upon a setup, what follows is done under it.
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

// answer: at once, or when enough copies have the same state. A spare says nothing, and
// nobody answers a command of its own twice.
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

// everySo compares the states where Config says so.
func (p *server) everySo(s *parley.Step) {
	if p.c.Every > 0 && p.position%p.c.Every == 0 {
		p.votes.compare(s, &p.replica)
	}
}

// check: upon word of somebody's state, count it. It tells whether this copy's is wrong.
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

// release says the answers that are confirmed.
func (p *server) release(s *parley.Step, v *vote) {
	for _, answer := range v.release() {
		p.say(s, answer)
	}
}

// say delivers an answer, or keeps it until it is known that this copy counts.
func (p *server) say(s *parley.Step, answer parley.Msg) {
	if p.doubt.comparing() {
		p.doubt.compares.answers = append(p.doubt.compares.answers, answer)
		return
	}
	s.Deliver(answer.Origin, answer)
}

// keep: upon a mark, keep the state as of now for the joiner, and tell it the hash.
func (p *server) keep(s *parley.Step, to parley.ID, m parley.Msg) {
	if to == s.Self || p.c.Piece == 0 {
		return
	}
	p.offers.drop(to)
	if len(p.offers) >= mostKept {
		return // it asks again
	}
	o := offer{to, m.Seq, p.save(), s.Now}
	p.offers = append(p.offers, o)
	if p.doubt.comparing() { // it is told if this copy counts
		p.doubt.compares.sums = append(p.doubt.compares.sums, late{to, o.sum()})
	} else {
		s.Send(to, o.sum())
	}
	s.SetTimer(retry, p.c.Retry)
}

// given is what a sponsor gives to the group.
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
