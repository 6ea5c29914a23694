// Package vector implements reliable broadcast among the members of a view: without an order, in FIFO order or in
// causal order. The sender chooses the level of each message. A view is a set of processes on which the processes
// agree (see membership/group).
//
// The problem: reliable, FIFO and causal broadcast in a system that runs without end while processes join and leave.
// All processes that install two consecutive views have delivered the same messages in between. The level of a
// message determines when a member delivers it:
//
//   - Reliable: when the message arrives.
//   - Uniform: when all members hold the message.
//   - FIFO: after all messages that its sender broadcast before it in the view.
//   - Causal: after all messages that its sender had broadcast or delivered before it in the view.
//
// The bound: asynchronous messages, crash faults, false suspicions. Links are FIFO and may lose messages, but neither
// reorder nor duplicate them. Progress needs a majority of all processes (see membership/group). If only a crashed or
// excluded member has a message, the remaining members lose this message, and all messages that wait for it. The
// crashed or excluded member may have delivered the lost message. (This cannot happen with level Uniform.) So the
// levels other than Uniform are not uniform.
//
// Why it works: messages of one sender are numbered, and arrive in the order of their numbers. So a member can detect
// that it missed a message. A member keeps each received message until it knows that all members have received it.
// When the view ends, each member that continues reports the messages that it keeps. The union of the reports is the
// cut. All these members deliver the cut before they install the next view. So every message that one of these
// members has received is in the cut, or all members hold it.
//
// The sender of a causal message has delivered all messages on which it depends. If the sender continues, these
// messages are in its report, or all members hold them. All members hold a message of level Uniform before any member
// delivers the message. So at the end of the view every member reports the message, or has delivered it.
//
// The vector of a message has one count for each member of the view: the number of messages of this member that must
// be delivered first. Counts restart with the next view. So former members take no room in a vector. If messages of a
// sender are lost, the gap in its numbers ends with the view. A count covers all earlier messages of a member. This
// includes messages of level Uniform, which members may deliver after later messages of the same sender. So a causal
// message may wait for more messages than necessary. But no two messages wait for each other, because a message waits
// only for messages that were sent earlier.
//
// A member stores at most n*W messages, because each sender has at most W messages that some member may not have
// received. If Hold is set, a member delays acknowledgements, but only until W/2 messages have arrived. It never
// delays the acknowledgement of a message of level Uniform, because deliveries depend on this acknowledgement.
//
// Source: causal broadcast with vector times in views, stability and flush, from Birman, Schiper and Stephenson
// (1991). Package membership/group describes the end of a view.
//
// # Decisions
//
// Groups without a total order have views, too, the same views that the total order has. This machine serves all
// these groups, and each message may have its own level. Motive: package diffusion and the protocols on top of it
// have no views. They do not replace messages that a link loses. So a node that was disconnected for a short time
// would wait forever for a message that it missed. Cost: these groups need a majority, and FIFO and causal broadcast
// are implemented twice.
package vector

import (
	"slices"

	"parley"
	"parley/broadcast/views"
)

// The messages of the layer. The Value of Data is the level. After its first vector, Data of level Causal has a
// second vector: for each member, the number of the last message of this member that the sender has delivered. The
// payload comes last.
const (
	Data = views.Data
	Ack  = views.Ack
)

// Level is what is promised about the order of a message, and about processes that fail.
type Level uint8

// The levels. A request may name a level in its Value. 0 means the level of the Config.
const (
	Reliable Level = iota + 1
	Uniform
	FIFO
	Causal
)

// held is a message that is not delivered, or not known to be received by all.
type held struct {
	level     Level
	need      []uint64 // Causal: by process: how many messages precede it
	body      []byte
	delivered bool
}

// stream is what arrived from one member in this view.
type stream struct {
	gone uint64 // all up to here are delivered, and held by all members
	held []held // the following ones
	done uint64 // all up to here are delivered
	top  uint64 // the last delivered one
}

// received returns the number of the last received message.
func (l *stream) received() uint64 { return l.gone + uint64(len(l.held)) }

// at returns the message with a number, which must be held.
func (l *stream) at(seq uint64) *held { return &l.held[seq-l.gone-1] }

// deliver marks a message as delivered, and returns it.
func (l *stream) deliver(seq uint64) *held {
	h := l.at(seq)
	h.delivered = true
	l.top = max(l.top, seq)
	for l.done < l.received() && l.held[l.done-l.gone].delivered {
		l.done++
	}
	return h
}

// fill adds a message of the cut unless it was received.
func (l *stream) fill(m message) {
	switch {
	case m.seq <= l.gone:
	case m.seq == l.received()+1:
		l.held = append(l.held, m.held)
	case m.seq <= l.received():
		if h := l.at(m.seq); h.level == 0 && !h.delivered {
			*h = m.held
		}
	}
}

// forget drops the messages up to stable, which all members hold, as far as they are delivered.
func (l *stream) forget(stable uint64) {
	if upto := min(stable, l.done); upto > l.gone {
		l.held = slices.Delete(l.held, 0, int(upto-l.gone))
		l.gone = upto
	}
}

// state visits every variable, among n processes.
func (l *stream) state(v *parley.Vars, n int) {
	parley.Num(v, "with all", &l.gone)
	parley.Num(v, "delivered", &l.done)
	parley.Num(v, "last delivered", &l.top)
	parley.Slice(v, "held", &l.held, func(_ int, h *held) {
		parley.Num(v, "level", &h.level)
		if h.level == Causal {
			if h.need == nil {
				h.need = make([]uint64, n)
			}
			parley.PerProcess(v, "after", h.need, func(_ parley.ID, x *uint64) { parley.Num(v, "count", x) })
		}
		v.Bytes("body", &h.body)
		v.Bool("delivered", &h.delivered)
	})
}

// name identifies a message of the view.
type name struct {
	sender parley.ID
	seq    uint64
}

// maxWindow bounds the window.
const maxWindow = 1 << 16

// opening is the timer for own messages that wait when a view begins; views uses timer 1.
const opening parley.Timer = 2

// request is an own message beyond the window.
type request struct {
	level Level
	body  []byte
}

// layer is one member.
type layer struct {
	views.Member
	c Config
	n int

	streams []stream // by process
	queue   []request
	again   []name   // durable: delivered before a crash, to be delivered again
	have    []uint64 // scratch: the result of received
}

func newLayer(c Config, self parley.ID, n int) *layer {
	return &layer{
		Member: views.NewMember(self, n, c.Hold), c: c, n: n, streams: make([]stream, n), have: make([]uint64, n),
	}
}

// received returns how many messages of each member arrived. The result is valid until the next call.
func (l *layer) received() []uint64 {
	for q := range l.streams {
		l.have[q] = l.streams[q].received()
	}
	return l.have
}

// Request is upon broadcast(m).
func (l *layer) Request(s *parley.Step, m parley.Msg) {
	level := Level(m.Value)
	switch {
	case m.Value > uint64(Causal):
		s.Refuse(l.Self, "request of no level")
		return
	case len(l.queue) >= l.c.Queue:
		s.Refuse(l.Self, "too many requests for the window")
		return
	case level == 0:
		level = l.c.Level
	}
	l.queue = append(l.queue, request{level, m.Body})
	l.settle(s)
}

// send broadcasts the next own message if there is one, and fewer than W are not known to be held by all.
func (l *layer) send(s *parley.Step) bool {
	own := &l.streams[l.Self]
	if len(l.queue) == 0 || own.received()-l.stable(l.Self) >= uint64(l.c.Window) {
		return false
	}
	r := l.queue[0]
	l.queue = slices.Delete(l.queue, 0, 1)
	h := held{level: r.level, body: r.body}
	if r.level == Causal {
		h.need = make([]uint64, l.n)
		for q := range h.need {
			h.need[q] = l.streams[q].top
		}
		h.need[l.Self] = 0 // the message's own number covers that
	}
	l.hold(s, l.Self, h)
	m := parley.Msg{Kind: Data, Seq: own.received(), Value: uint64(r.level)}
	m.Body = l.Acknowledge(s, l.received(), 3*l.n+len(r.body))
	if h.need != nil {
		m.Body = views.AppendVector(m.Body, l.View.Members, h.need)
	}
	m.Body = append(m.Body, r.body...)
	s.SendTo(l.View.Members, m)
	return true
}

// hold keeps the next message of a sender.
func (l *layer) hold(s *parley.Step, q parley.ID, h held) {
	if l.c.Durable {
		s.Append(appendMessage([]byte{holds}, message{name{q, l.streams[q].received() + 1}, h}))
	}
	l.streams[q].held = append(l.streams[q].held, h)
}

// Receive handles DATA or ACK of another member.
func (l *layer) Receive(s *parley.Step, q parley.ID, m parley.Msg) (gap bool) {
	body, why := l.Open(q, m, l.streams[l.Self].received(), uint64(Causal), "no such number or level")
	if why != "" {
		s.Refuse(q, why)
		return false
	}
	h, urgent := held{level: Level(m.Value), body: body}, false
	if m.Kind == Data {
		if h.level == Causal {
			var ok bool
			if h.need, h.body, ok = l.need(q, body); !ok {
				s.Refuse(q, "what comes before it cannot be read, or is far ahead")
				return false
			}
		}
		// the messages of a sender come in its order, or one is missing
		if m.Seq != l.streams[q].received()+1 {
			return true
		}
		l.hold(s, q, h)
		urgent = h.level == Uniform || 2*(m.Seq-l.Acks[l.Self][q]) >= uint64(l.c.Window)
	}
	if l.Said(q) != l.streams[q].received() {
		return true
	}
	l.Note(q)
	if m.Kind == Data {
		l.Owe(s, l.received(), urgent)
	}
	l.settle(s)
	return false
}

// need decodes which messages precede a causal message of q. No member can have delivered more of another
// than the other has sent, which is at most W more than this one has received.
func (l *layer) need(q parley.ID, b []byte) (need []uint64, body []byte, ok bool) {
	vec, body, ok := views.ReadVector(nil, b)
	if !ok || len(vec) != l.View.Members.Len() {
		return nil, nil, false
	}
	need = make([]uint64, l.n)
	rank := 0
	for id := range l.View.Members.All() {
		need[id] = vec[rank]
		if id == q && vec[rank] != 0 || vec[rank] > l.streams[id].received()+uint64(l.c.Window) {
			return nil, nil, false
		}
		rank++
	}
	return need, body, true
}

// Timeout ends a batch of acknowledgements, or sends own messages that waited for the view.
func (l *layer) Timeout(s *parley.Step, t parley.Timer) {
	l.Flush(s, t, l.received())
	l.settle(s)
}

// settle delivers the messages that can be, drops those that all members hold, and sends what the window then
// allows.
func (l *layer) settle(s *parley.Step) {
	for sent := true; sent; sent = l.send(s) {
		l.release(s, false)
		for q := range l.View.Members.All() {
			if ln := &l.streams[q]; len(ln.held) > 0 {
				ln.forget(l.stable(q))
			}
		}
	}
}

// stable returns how many messages of a member all members are known to hold.
func (l *layer) stable(sender parley.ID) uint64 {
	least := uint64(views.Limit)
	for q := range l.View.Members.All() {
		if q == l.Self {
			continue // min below covers this process
		}
		least = min(least, l.Acks[q][sender])
	}
	return min(least, l.streams[sender].received())
}

// release delivers messages that wait for nothing more, until there are none. At the end of a view (over) all
// continuing members hold all of them.
func (l *layer) release(s *parley.Step, over bool) {
	for more := true; more; {
		more = false
		for q := range l.streams {
			ln := &l.streams[q]
			for i := ln.done - ln.gone; i < uint64(len(ln.held)); i++ {
				id := name{parley.ID(q), ln.gone + i + 1}
				if h := &ln.held[i]; !h.delivered && l.ready(id, h, over) {
					if l.c.Durable && !over { // at the end of a view the cut records it
						s.Append(appendName([]byte{delivers}, id))
					}
					body := ln.deliver(id.seq).body
					s.Deliver(id.sender, parley.Msg{Kind: parley.Carried, Origin: id.sender, Body: body})
					more = true
				}
			}
		}
	}
}

// ready reports whether a message can be delivered.
func (l *layer) ready(id name, h *held, over bool) bool {
	before := l.streams[id.sender].done >= id.seq-1
	switch h.level {
	case Reliable:
		return true
	case Uniform:
		return over || l.stable(id.sender) >= id.seq
	case FIFO:
		return before
	case Causal:
		for q, count := range h.need {
			before = before && l.streams[q].done >= count
		}
		return before
	}
	return false // a joiner has only its place
}

// Waiting reports whether a message is not yet delivered: what is missing for it may have been the last
// message of a link that broke.
func (l *layer) Waiting() bool {
	return len(l.queue) > 0 || slices.ContainsFunc(l.streams, func(ln stream) bool { return ln.done < ln.received() })
}

// Oldest returns the number of the oldest own message that is not known to be held by all, or 0: a link may
// have lost it.
func (l *layer) Oldest() uint64 {
	if stable := l.stable(l.Self); stable < l.streams[l.Self].received() {
		return stable + 1
	}
	return 0
}
