// Package priorities is one process of atomic broadcast by agreed priorities, for processes that do not crash.
//
// A sender sends its message to all. Each receiver holds the message, and proposes a priority for it. The sender
// chooses the highest proposal, which is final, and sends it to all. The processes deliver messages in the order of
// their final priorities.
package priorities

import (
	"cmp"
	"slices"

	"parley"
)

// The kinds of messages. Seq: the number of the broadcast among those of its sender, from 1.
const (
	Data     parley.Kind = iota + 1 // from the sender to all. Body: the payload
	Proposal                        // from a receiver to the sender. Value: the priority
	Final                           // from the sender to all. Value: the priority
)

// New returns the machine of a process, of n.
func New(_ int, self parley.ID) parley.Machine { return &machine{self: self} }

// machine is a process. If you add a field that changes, let State visit it.
type machine struct {
	parley.Base
	self    parley.ID
	sent    uint64 // how many messages this process has broadcast
	highest uint64 // the highest priority that this process knows
	queue   []held // the messages that are not delivered yet, sorted by sender and number
	open    []vote // the broadcasts of this process that have no final priority
}

// held is a message that is not delivered yet.
type held struct {
	from     parley.ID
	seq      uint64
	priority uint64
	final    bool
	body     []byte
}

// vote collects the proposals for one broadcast of this process.
type vote struct {
	seq  uint64
	from parley.Set // the processes that have proposed
	best uint64     // the highest proposal
}

// hold puts a message into the queue, with the priority that this process proposes.
func (p *machine) hold(from parley.ID, seq, priority uint64, body []byte) {
	e := held{from: from, seq: seq, priority: priority, body: body}
	i, found := slices.BinarySearchFunc(p.queue, e, func(a, b held) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.seq, b.seq))
	})
	if !found {
		p.queue = slices.Insert(p.queue, i, e)
	}
}

// Request handles the request to broadcast a payload.
func (p *machine) Request(s *parley.Step, m parley.Msg) {
	if m.Kind != parley.Carried {
		s.Refuse(s.Self, "not a request to broadcast")
		return
	}
	p.sent++
	p.open = append(p.open, vote{seq: p.sent})
	s.SendAll(parley.Msg{Kind: Data, Seq: p.sent, Body: m.Body})
	priority := p.propose(s)
	p.hold(p.self, p.sent, priority, m.Body)
	p.collect(s, p.self, p.sent, priority)
}

// Receive handles a message from a link.
func (p *machine) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch m.Kind {
	case Data:
		priority := p.propose(s)
		p.hold(from, m.Seq, priority, m.Body)
		s.Send(from, parley.Msg{Kind: Proposal, Seq: m.Seq, Value: priority})
	case Proposal:
		p.collect(s, from, m.Seq, m.Value)
	case Final:
		p.finish(s, from, m.Seq, m.Value)
	default:
		s.Refuse(from, "not a message of this protocol")
	}
}

// propose returns the priority that this process proposes for a new message.
func (p *machine) propose(s *parley.Step) uint64 {
	// hole: Return a priority that is higher than all priorities that this process knows, and that no other process ever
	// proposes, so that all final priorities are different. Keep it in highest. There are s.N processes; s.Self is this
	// one, from 0.
	// | return 0
	n := uint64(s.N)
	p.highest = (p.highest/n+1)*n + uint64(s.Self)
	return p.highest
	// end of hole
}

// collect takes a proposal for a broadcast of this process.
func (p *machine) collect(s *parley.Step, from parley.ID, seq, priority uint64) {
	i := slices.IndexFunc(p.open, func(v vote) bool { return v.seq == seq })
	if i < 0 {
		s.Refuse(from, "a proposal that is not needed")
		return
	}
	// hole: When all processes have proposed, this one included, the highest proposal is final: take the vote out of
	// open, send the final priority to all others, and call finish for this process.
	v := &p.open[i]
	v.from.Add(from)
	v.best = max(v.best, priority)
	if v.from.Len() < s.N {
		return
	}
	best := v.best
	p.open = slices.Delete(p.open, i, i+1)
	s.SendAll(parley.Msg{Kind: Final, Seq: seq, Value: best})
	p.finish(s, p.self, seq, best)
	// end of hole
}

// finish gives a message its final priority, and delivers what can be delivered then.
func (p *machine) finish(s *parley.Step, from parley.ID, seq, priority uint64) {
	i := slices.IndexFunc(p.queue, func(e held) bool { return e.from == from && e.seq == seq })
	if i < 0 {
		s.Refuse(from, "a priority of a message that is not held")
		return
	}
	p.queue[i].priority, p.queue[i].final = priority, true
	p.highest = max(p.highest, priority)
	// hole: While the message with the lowest priority in the queue has its final one, take it out of the queue and
	// deliver it: see deliver. (Why must a message wait for one that has a lower priority, which is not yet final?)
	for len(p.queue) > 0 {
		first := slices.MinFunc(p.queue, func(a, b held) int { return cmp.Compare(a.priority, b.priority) })
		if !first.final {
			return
		}
		p.queue = slices.DeleteFunc(p.queue, func(e held) bool { return e.from == first.from && e.seq == first.seq })
		p.deliver(s, first)
	}
	// end of hole
}

// deliver delivers a message.
func (p *machine) deliver(s *parley.Step, e held) {
	s.Deliver(e.from, parley.Msg{Kind: parley.Carried, Origin: e.from, Body: e.body})
}

// State visits every field that changes. The explorer needs it to tell states apart.
func (p *machine) State(v *parley.Vars) {
	parley.Num(v, "sent", &p.sent)
	parley.Num(v, "highest", &p.highest)
	parley.Slice(v, "queue", &p.queue, func(_ int, e *held) {
		v.ID("from", &e.from)
		parley.Num(v, "seq", &e.seq)
		parley.Num(v, "priority", &e.priority)
		v.Bool("final", &e.final)
		v.Bytes("body", &e.body)
	})
	parley.Slice(v, "open", &p.open, func(_ int, o *vote) {
		parley.Num(v, "seq", &o.seq)
		v.Set("from", &o.from)
		parley.Num(v, "best", &o.best)
	})
}
