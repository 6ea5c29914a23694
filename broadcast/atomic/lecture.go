package atomic

import (
	"parley"
	"parley/broadcast/problem"
)

// process is one process of the lecture's form.
type process struct {
	parley.Base
	n    int
	self parley.ID
	gone bool // it restarted after a crash, and has forgotten what it answered

	sent    uint64  // own messages
	queue           // what it has received and not delivered
	past    entries // what it has delivered, with the final priorities
	crashed parley.Set
	duties  problem.Sorted[name, duty] // the messages that it coordinates
	inbox   []message                  // scratch: what it sent to itself in this step
}

// duty is a message that a process coordinates, as its sender or in a takeover.
type duty struct {
	name
	to      parley.Set
	body    []byte
	ballot  uint64
	asking  bool       // in a takeover: it waits for answers, not for proposals
	heard   parley.Set // the processes that have answered, or proposed
	answers []Answer   // by process
	highest Priority   // of the proposals
}

// Start: a process that crashed stays silent. Its peers know what it told them, but it does not.
func (p *process) Start(s *parley.Step) { p.gone = s.Restart }

// Request. Phase I, 1: the sender multicasts the message to its receivers and
// names them in it. The sender's own ballot is the first for its message.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	to, body, err := problem.Decode(m, p.n)
	if err != nil {
		s.Refuse(s.Self, err.Error())
		return
	}
	if p.gone {
		return
	}
	p.sent++
	d := duty{name: name{p.self, p.sent}, to: to, body: body, ballot: uint64(p.self)}
	p.coordinate(d)
	p.multicast(s, to, message{kind: Req, name: d.name, mark: d.ballot, to: to, body: body})
	p.settleDown(s)
}

// Receive handles a message of a peer, or an indication that a process has crashed.
func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case p.gone:
		return
	case m.Kind == parley.Suspect && m.Origin != p.self:
		p.crashed.Add(m.Origin)
	case m.Kind < parley.Local:
		read, err := decode(m, from, p.n)
		if err != nil {
			s.Refuse(from, err.Error())
			return
		}
		p.hear(s, from, read)
	}
	p.settleDown(s)
}

// settleDown does what has become due in this step: messages to itself, the next phase of a message for which
// all have answered, and takeovers.
func (p *process) settleDown(s *parley.Step) {
	for {
		switch {
		case len(p.inbox) > 0:
			m := p.inbox[0]
			p.inbox = p.inbox[1:]
			p.hear(s, p.self, m)
		case p.proceed(s) || p.takeOver(s):
		default:
			p.inbox = nil
			return
		}
	}
}

// hear handles a message, and refuses one that a greater ballot has superseded.
func (p *process) hear(s *parley.Step, from parley.ID, m message) {
	switch m.kind {
	case Req, Final, Status:
		if p.admit(s, from, m) {
			p.obey(s, from, m)
		}
	case Prop:
		p.proposal(s, from, m)
	case Known:
		p.answer(s, from, m)
	case Refuse:
		p.refused(m)
	default:
		s.Refuse(from, "message of the form in views")
	}
}

// obey handles a coordinator's message at a receiver.
func (p *process) obey(s *parley.Step, from parley.ID, m message) {
	e := p.known(m.name)
	switch m.kind {
	// Phase I, 2: a receiver assigns a priority, marks the message undeliverable,
	// buffers it and tells the sender. If phase I runs again, holders repeat theirs.
	case Req:
		switch {
		case e.state == Unknown && p.exhausted():
			s.Refuse(from, "no priority is left")
			return
		case e.state == Unknown:
			e = p.hold(p.self, m.name, m.to, m.body)
		case e.state != Undeliverable:
			s.Refuse(from, "a proposal is asked for what has its final priority")
			return
		}
		p.send(s, from, message{kind: Prop, name: m.name, mark: m.mark, priority: e.priority})
	// Phase II, 2: a receiver assigns the final priority, marks the message
	// deliverable and delivers from the head of the queue.
	case Final:
		switch {
		case e.state == Unknown && m.to.Has(p.self):
			e = p.hold(p.self, m.name, m.to, m.body)
		case e.state != Undeliverable:
			if e.state == Unknown || e.priority != m.priority {
				s.Refuse(from, "final priority of a message that is not held, or has another")
			}
			return
		}
		p.settle(e, m.priority)
		p.deliver(s)
	// Failure scenario, 1: the answers I, II and III. A delivered message is remembered too, because
	// otherwise it could get another final priority.
	case Status:
		p.send(s, from, message{kind: Known, name: m.name, mark: m.mark, state: e.state, priority: e.priority})
	}
}

// deliver delivers while the message of the least priority is deliverable.
func (p *process) deliver(s *parley.Step) {
	for h := p.head(); h != nil && h.state == Deliverable; h = p.head() {
		s.Deliver(h.sender, parley.Msg{Kind: parley.Carried, Origin: h.sender, Body: h.body})
		done, _ := p.past.Put(h.name, *h)
		done.body, done.state = nil, Delivered
		p.held.Drop(done.name)
	}
}

// proposal. Phase II, 1: the sender waits for all receivers that have not crashed,
// and chooses the highest priority.
func (p *process) proposal(s *parley.Step, from parley.ID, m message) {
	d := p.duties.At(m.name)
	if d == nil || d.asking || d.ballot != m.mark || !d.to.Has(from) {
		s.Refuse(from, "proposal that nobody waits for")
		return
	}
	d.heard.Add(from)
	d.highest = later(d.highest, m.priority)
}

// proceed completes the first duty for which all live receivers have been heard, and reports whether there
// was one.
func (p *process) proceed(s *parley.Step) bool {
	for i := range p.duties {
		d := &p.duties[i]
		living := d.to.Minus(p.crashed)
		switch {
		case living.Minus(d.heard) != (parley.Set{}):
			continue
		case d.asking:
			p.conclude(s, d, living)
		// Phase II, 1: and multicasts it as the final priority to all receivers.
		default:
			p.multicast(s, d.to, message{kind: Final, name: d.name, mark: d.ballot, priority: d.highest})
			p.duties.Drop(d.name)
		}
		return true
	}
	return false
}

// known returns the entry of a message, delivered or not, nil if there is none.
func (p *process) known(n name) *entry {
	if e := p.past.At(n); e != nil {
		return e
	}
	return p.held.At(n)
}

// coordinate takes on a duty, in place of one for the same message.
func (p *process) coordinate(d duty) {
	p.duties.Drop(d.name)
	d.answers = make([]Answer, p.n)
	p.duties.Put(d.name, d)
}

func (p *process) multicast(s *parley.Step, to parley.Set, m message) {
	s.SendTo(to, m.encode())
	if to.Has(p.self) {
		p.inbox = append(p.inbox, m)
	}
}

func (p *process) send(s *parley.Step, to parley.ID, m message) { p.multicast(s, parley.SetOf(to), m) }

// State visits the state.
func (p *process) State(v *parley.Vars) {
	v.Bool("gone", &p.gone)
	parley.Num(v, "sent", &p.sent)
	p.queue.visit(v)
	visit(v, "past", &p.past)
	v.Set("crashed", &p.crashed)
	parley.Slice(v, "duties", (*[]duty)(&p.duties), func(_ int, d *duty) {
		d.name.visit(v)
		v.Set("to", &d.to)
		v.Bytes("body", &d.body)
		parley.Num(v, "ballot", &d.ballot)
		v.Bool("asking", &d.asking)
		v.Set("heard", &d.heard)
		d.highest.visit(v)
		if v.Loading() {
			d.answers = make([]Answer, p.n)
		}
		parley.PerProcess(v, "answers", d.answers, func(_ parley.ID, a *Answer) {
			parley.Num(v, "state", &a.State)
			a.Priority.visit(v)
		})
	})
}

// owner returns the owner of a ballot. Senders use the first n ballots, of level 0, for their own messages.
func (p *process) owner(ballot uint64) parley.ID { return parley.ID(ballot % uint64(p.n)) }

// above returns this process's lowest takeover ballot above the given one.
func (p *process) above(ballot uint64) uint64 {
	n := uint64(p.n)
	own := ballot/n*n + uint64(p.self)
	if own <= ballot || own < n {
		own += n
	}
	return own
}
