// Package causal implements causal broadcast, in two forms. In one form, each message carries all messages on which
// it may depend (Piggyback). In the other form, each message carries a vector clock, which counts those messages.
//
// The problem: causal broadcast is reliable broadcast with one more promise. A message m directly precedes a message
// m' if the sender of m' broadcast or delivered m before it broadcast m'. A message causally precedes m' if a chain
// of direct precedences leads from it to m'. If m causally precedes m', every correct process that delivers m' has
// delivered m before. If neither of two messages precedes the other, processes may deliver them in different orders.
//
// The protocol runs on top of another broadcast, and has the model of that broadcast: asynchronous messages, and
// crashes. But no process may lie, because a process that piggybacks a message could forge the message. The protocol
// keeps the validity and the agreement of the broadcast in the layer below. If that broadcast is uniform, so is this
// protocol.
//
// Piggyback is the form of the lecture (docs/explanation/sources.md), and works on top of FIFO broadcast. A broadcast
// is a bundle of messages. First come all messages that the sender has delivered since its previous broadcast,
// including its own, in the order of delivery. The lecture calls this list prevDlvs. The last message of the bundle
// is the new message. A receiver delivers the messages of the bundle that it has not delivered yet. This works
// because each message that causally precedes m' is in one of three places: in the bundle of m' itself; in an earlier
// bundle of the sender of m'; or in the bundle of a message that one of these bundles contains. No message ever waits
// for another message. Bundles are numbered. So if the layer below is not FIFO, a process detects this, and delivers
// nothing more from the sender. The cost is length: a bundle grows with the number of messages that its sender has
// delivered since its last broadcast. If a process has delivered Config.Most messages without a broadcast of its own,
// it broadcasts a bundle without a new message. So memory and the length of messages are bounded.
//
// Vector clocks work on top of any reliable broadcast. A message carries a vector with one count for each incarnation
// of each process. The count says how many messages of that incarnation the sender of the message had delivered. A
// receiver holds the message back until it has delivered at least as many messages of each incarnation. A count is
// enough to identify the messages, because all processes deliver the messages of an incarnation in the order of their
// numbers. The cost is that each message carries a vector, and that messages wait.
//
// Both forms deliver the same set of messages, but not in the same order. Suppose that m precedes m', and that m'
// arrives first. With Piggyback, the receiver at once delivers m, from the copy in the bundle of m', and then m'.
// With vector clocks, m' waits for m, and the receiver may deliver other messages first.
//
// Memory: in both forms a process delivers the messages of an incarnation in the order of their numbers. So one
// number for each incarnation records which messages were delivered, and detects duplicates. Besides these numbers,
// Piggyback stores prevDlvs. With vector clocks, a process stores at most Config.Window held-back messages of each
// incarnation. A process refuses a message if some count of its vector is more than Config.Window ahead of the
// process's own count. A refused message is lost, and all messages that depend on it wait forever or are refused,
// too. So if the conditions of the model do not hold, causal order still holds, but some messages may not be
// delivered.
//
// Incarnations: a process that restarts after a crash counts as another sender, which has broadcast and delivered
// nothing. A process remembers the last problem.MaxLives incarnations of each process.
//
// Source: the lecture on broadcast, causal broadcast using FIFO broadcast. The lecture's
// prevDlvs, the deliveries since the last broadcast, is a sequence in this package, because their order matters.
// Vector clocks are from Birman, Schiper and Stephenson (1991), but here a vector has a count for each incarnation
// instead of each process.
package causal

import (
	"parley"
	"parley/broadcast/problem"
)

// The messages. They are broadcast by the layer below, never sent on links.
const (
	// Bundle is prevDlvs and a message, or only prevDlvs. Value: the sender's incarnation, from 1. Seq: the bundle's
	// number in that incarnation, from 1. Body: the messages (see [Unpack]).
	Bundle parley.Kind = iota + 1
	// Stamped is a message with a vector clock. Value: the sender's incarnation. Seq: the message's number in
	// that incarnation, from 1. Body: the vector and the payload, see [ReadStamp].
	Stamped
)

// Form is how a message says what it depends on.
type Form uint8

// The forms.
const (
	Piggyback Form = iota // a message contains the messages that it depends on
	Vector                // a message has a vector that counts them
)

func (f Form) String() string { return [...]string{"piggyback", "vector"}[f] }

type process struct {
	parley.Base
	c Config

	me     problem.Incarnation
	seq    uint64                  // of its last broadcast in this incarnation
	sender []problem.Lives[stream] // by sender

	prevDlvs []Message // piggyback: C-delivered since the last C-broadcast, in order
	bundles  uint64    // piggyback: its own bundles in this incarnation
}

// stream is what this process has received from one incarnation of a sender.
type stream struct {
	delivered uint64                          // number of delivered messages: those with the first numbers
	opened    uint64                          // piggyback: number of opened bundles
	broken    bool                            // piggyback: a message or bundle of this sender is missing
	waiting   problem.Sorted[uint64, stamped] // vector: by number
}

// Message is one message that was C-broadcast.
type Message struct {
	Sender parley.ID
	Life   uint64 // the sender's incarnation
	Seq    uint64 // its number in that incarnation, from 1
	Body   []byte // the payload
}

// Start: prevDlvs is empty.
func (p *process) Start(s *parley.Step) { p.me.Begin(s) }

// Request executes broadcast(C, m).
func (p *process) Request(s *parley.Step, m parley.Msg) {
	if m.Kind != parley.Carried {
		s.Refuse(s.Self, "request that is no broadcast")
		return
	}
	p.seq++
	own := Message{Sender: s.Self, Life: uint64(p.me), Seq: p.seq, Body: m.Body}
	if p.c.Form == Vector {
		p.stamp(s, own)
		return
	}
	// broadcast(F, <prevDlvs || m>); prevDlvs := empty.
	p.bundle(s, append(p.prevDlvs, own))
}

// bundle broadcasts messages and empties prevDlvs.
func (p *process) bundle(s *parley.Step, all []Message) {
	p.bundles++
	s.Broadcast(parley.Msg{Kind: Bundle, Seq: p.bundles, Value: uint64(p.me), Body: Pack(all)})
	p.prevDlvs = nil
}

// Receive handles a message of the layer beneath.
func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind >= parley.Local: // an indication
	case int(from) < s.N && m.Kind == Bundle && p.c.Form == Piggyback && m.Origin == 0 && m.Seq > 0:
		p.open(s, from, m)
	case int(from) < s.N && m.Kind == Stamped && p.c.Form == Vector && m.Origin == 0 && m.Seq > 0:
		p.hold(s, from, m)
	default:
		s.Refuse(from, "no message of a broadcast")
	}
}

// open: upon deliver(F, <m1 ... ml>), for i = 1 to l, if m_i was not C-delivered
// before, C-deliver it and append it to prevDlvs.
func (p *process) open(s *parley.Step, from parley.ID, m parley.Msg) {
	all, err := Unpack(m.Body, s.N)
	if err != nil {
		s.Refuse(from, err.Error())
		return
	}
	f := p.sender[from].At(m.Value)
	if f == nil {
		s.Refuse(from, "message of a life long past")
		return
	}
	if f.broken = f.broken || m.Seq != f.opened+1; f.broken {
		s.Refuse(from, "message that is not the next of its sender")
		return
	}
	f.opened++
	for _, one := range all {
		f := p.sender[one.Sender].At(one.Life)
		switch {
		case f == nil || one.Seq <= f.delivered: // delivered, or of a forgotten incarnation
		case one.Seq > f.delivered+1:
			// This process was down, and missed the predecessor. The rest of the bundle depends on it.
			s.Refuse(from, "piggybacked message without its predecessor")
			p.sender[from].At(m.Value).broken = true
			return
		default:
			f.delivered++
			p.deliver(s, one)
			p.prevDlvs = append(p.prevDlvs, one)
		}
	}
	if len(p.prevDlvs) >= p.c.Most {
		p.bundle(s, p.prevDlvs)
	}
}

func (p *process) deliver(s *parley.Step, m Message) {
	s.Deliver(m.Sender, parley.Msg{Kind: parley.Carried, Origin: m.Sender, Body: m.Body})
}

func (p *process) State(v *parley.Vars) {
	if shown := v.Shown(); shown != nil && p.c.Form == Vector {
		p.showHeld(shown)
	}
	p.me.State(v)
	parley.Num(v, "seq", &p.seq)
	parley.PerProcess(v, "from", p.sender, func(_ parley.ID, of *problem.Lives[stream]) {
		of.State(v, func(f *stream) {
			parley.Num(v, "delivered", &f.delivered)
			parley.Num(v, "opened", &f.opened)
			v.Bool("broken", &f.broken)
			parley.Slice(v, "waiting", (*[]stamped)(&f.waiting), func(_ int, w *stamped) { w.state(v) })
		})
	})
	parley.Num(v, "bundles", &p.bundles)
	parley.Slice(v, "prevDlvs", &p.prevDlvs, func(_ int, m *Message) { m.state(v) })
}

func (m *Message) state(v *parley.Vars) {
	v.ID("sender", &m.Sender)
	parley.Num(v, "life", &m.Life)
	parley.Num(v, "seq", &m.Seq)
	v.Bytes("body", &m.Body)
}

// Previous returns prevDlvs of a machine: the messages that it has delivered since its last broadcast, in order.
func Previous(m parley.Machine) []Message { return m.(*process).prevDlvs }
