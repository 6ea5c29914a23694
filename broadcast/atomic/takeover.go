package atomic

import "parley"

// Answer is a receiver's answer to a process that takes over a message. It contains the state and, unless the state
// is Unknown, the priority.
type Answer struct {
	State    State
	Priority Priority
}

// Recover is the lecture's rule for a process that takes over a message and has the answers of all live receivers. If
// any of them knows the final priority, this priority stands, and the process multicasts it. Otherwise known is
// false, and phase I runs again. A receiver that has delivered the message knows the final priority, whatever is in
// its queue.
func Recover(answers []Answer) (final Priority, known bool) {
	for _, a := range answers {
		if a.State == Deliverable || a.State == Delivered {
			return a.Priority, true
		}
	}
	return Priority{}, false
}

// takeOver: a receiver that has a message marked undeliverable whose coordinator
// has crashed becomes the new coordinator, under a greater ballot of its own, and
// asks all receivers for the status of the message.
func (p *process) takeOver(s *parley.Step) bool {
	for i := range p.held {
		e := &p.held[i]
		if e.state != Undeliverable || !p.crashed.Has(p.owner(e.ballot)) {
			continue
		}
		e.ballot = p.above(e.ballot)
		p.coordinate(duty{name: e.name, to: e.to, body: e.body, ballot: e.ballot, asking: true})
		p.multicast(s, e.to.Minus(p.crashed), message{kind: Status, name: e.name, mark: e.ballot})
		return true
	}
	return false
}

// admit: several processes may take over, and only the greatest ballot counts. From the moment that a
// receiver has answered a ballot, it refuses all smaller ones and replies with the greater ballot.
func (p *process) admit(s *parley.Step, from parley.ID, m message) bool {
	first := m.mark < uint64(p.n)
	switch {
	case p.owner(m.mark) != from || first && (m.sender != from || m.kind == Status):
		s.Refuse(from, "ballot of another process")
		return false
	case m.kind == Req && !m.to.Has(p.self):
		s.Refuse(from, "message to others")
		return false
	}
	e := p.known(m.name)
	if e == nil {
		e, _ = p.held.Put(m.name, entry{name: m.name})
	}
	if m.mark < e.ballot {
		s.Refuse(from, "smaller ballot")
		p.send(s, from, message{kind: Refuse, name: m.name, mark: e.ballot})
		return false
	}
	e.ballot = m.mark
	p.yield(m.name, m.mark)
	return true
}

// yield drops this process's duty for a message under a smaller ballot.
func (p *process) yield(n name, ballot uint64) {
	if d := p.duties.At(n); d != nil && d.ballot < ballot {
		p.duties.Drop(n)
	}
}

// refused: a coordinator that meets a greater ballot leaves the message to the ballot's owner. If that one
// has crashed, the message must be taken over from that ballot; without knowing it, this process would wait
// forever for a receiver that has answered the other.
func (p *process) refused(m message) {
	p.yield(m.name, m.mark)
	if e := p.known(m.name); e != nil {
		e.ballot = max(e.ballot, m.mark)
	}
}

// answer handles an answer to Status.
func (p *process) answer(s *parley.Step, from parley.ID, m message) {
	d := p.duties.At(m.name)
	if d == nil || !d.asking || d.ballot != m.mark || !d.to.Has(from) {
		s.Refuse(from, "answer that nobody waits for")
		return
	}
	d.heard.Add(from)
	d.answers[from] = Answer{m.state, m.priority}
}

// conclude. Failure scenario, 2: all live receivers have answered.
func (p *process) conclude(s *parley.Step, d *duty, living parley.Set) {
	// I. If the message is marked deliverable at any receiver, that is its final priority: it is multicast,
	// with the message itself to those that have not received it.
	if final, known := Recover(d.answers); known {
		m := message{kind: Final, name: d.name, mark: d.ballot, priority: final}
		var without parley.Set
		for id := range d.heard.All() {
			if d.answers[id].State == Unknown {
				without.Add(id)
			}
		}
		p.multicast(s, d.to.Minus(without), m)
		m.to, m.body = d.to, d.body
		p.multicast(s, without, m)
		p.duties.Drop(d.name)
		return
	}
	// II. Otherwise the coordinator begins again with phase I.
	d.asking, d.heard, d.highest = false, parley.Set{}, Priority{}
	p.multicast(s, living, message{kind: Req, name: d.name, mark: d.ballot, to: d.to, body: d.body})
}
