// Package vector is reliable broadcast among the members of a view, in no order, in FIFO
// order or in causal order, each message as its sender asks.
//
// The problem: reliable broadcast, FIFO broadcast and causal broadcast, for as long as a
// system runs and whoever comes and goes. All that install two views have delivered the
// same messages in between. A message of level
//
//   - Reliable is delivered when it comes;
//   - Uniform, when all members hold it;
//   - FIFO, when all that its sender broadcast before it in the view is delivered;
//   - Causal, when moreover all is delivered that its sender had delivered.
//
// The bound: asynchronous messages on FIFO links that may lose but neither reorder nor
// double, crash faults, false suspicions. To go on it takes a majority of the current view,
// see membership/group. A message that all members but a crashed or excluded one lack is
// lost, and with it whatever cannot be delivered without it; it is so at all who stay. But
// for level Uniform the one who is gone may have delivered it: those levels are not
// uniform.
//
// Why it works: messages of one sender come in its order and are numbered, so that a member
// that missed one knows. A member keeps what it has received until it is told that all
// members have received it: when the view ends, what any of those who go on has received
// is in a report, and the cut is all that is in the reports. What a causal message depends
// on its sender has delivered: if the sender goes on that is in its report, or held by
// all. A level Uniform message is held by all before anyone delivers it, hence is in every
// report, or delivered by who gives that.
//
// A vector counts the messages of each member in the view. It has as many places as the
// view has members, and all counts begin again with the next view; so it does not grow
// with those who were members once, and no gap outlives a view. A count stands for all
// messages up to it, those too that overtook a Uniform one on the way: a causal message may
// wait for more than it must, but never for what waits for it, for that was sent later.
//
// Memory is at most n*W messages: a sender has W messages at most that it does not know to
// be received by all. Where acknowledgements may wait (Hold) they do so for at most half of
// that, and not for messages that are delivered by them.
//
// Source: causal broadcast with vector times in views, stability and flush, from Birman,
// Schiper and Stephenson (1991); the end of a view as in membership/group.
//
// # Decisions
//
// Groups without a common order have views too. One machine, broadcast/vector, serves all their levels,
// on the same views as total order, and each message may have its own. Motive: diffusion and the towers
// on it relay to everybody, lose what a link loses, and keep the counts of all lives; a node that was
// cut off for a moment would wait for a gap for ever. Cost: they too need a majority, and FIFO and
// causal broadcast exist twice.
package vector

import (
	"slices"

	"parley"
	"parley/broadcast/views"
)

// The messages of the layer. Value of Data: the level; behind its vector: for level Causal another one, of the last
// message of each that the sender has delivered, and the payload.
const (
	Data = views.Data
	Ack  = views.Ack
)

// Level is what a message is promised of order, and of those who fail.
type Level uint8

// The levels. A request may have one for its Value; 0 stands for that of the Config.
const (
	Reliable Level = iota + 1
	Uniform
	FIFO
	Causal
)

// held is a message that not all are known to have received, or that is not delivered.
type held struct {
	level     Level
	need      []uint64 // Causal: by process: which messages come before it
	body      []byte
	delivered bool
}

// line is what came from one member in this view.
type line struct {
	gone uint64 // all up to here are delivered and with all members
	held []held // those that follow
	done uint64 // all up to here are delivered
	top  uint64 // the last that is
}

// received is how many messages came.
func (l *line) received() uint64 { return l.gone + uint64(len(l.held)) }

// at is the message of a number, which is held.
func (l *line) at(seq uint64) *held { return &l.held[seq-l.gone-1] }

// deliver notes that a message is delivered, and returns it.
func (l *line) deliver(seq uint64) *held {
	h := l.at(seq)
	h.delivered = true
	l.top = max(l.top, seq)
	for l.done < l.received() && l.held[l.done-l.gone].delivered {
		l.done++
	}
	return h
}

// fill takes in a message of the cut that has not been received.
func (l *line) fill(m message) {
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

// forget lets go of the messages that are delivered and with all, as those up to stable are.
func (l *line) forget(stable uint64) {
	if upto := min(stable, l.done); upto > l.gone {
		l.held = slices.Delete(l.held, 0, int(upto-l.gone))
		l.gone = upto
	}
}

// state visits every variable, among n processes.
func (l *line) state(v *parley.Vars, n int) {
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

// name is a message of the view.
type name struct {
	sender parley.ID
	seq    uint64
}

// most is how many own messages may be on their way at most.
const most = 1 << 16

// opening is the timer of a view that has begun while own messages wait; views has 1.
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

	lines []line // by process
	queue []request
	again []name   // durable: delivered before a crash, and to be delivered once more
	have  []uint64 // scratch: see received
}

func newLayer(c Config, self parley.ID, n int) *layer {
	return &layer{
		Member: views.NewMember(self, n, c.Hold), c: c, n: n, lines: make([]line, n), have: make([]uint64, n),
	}
}

// received is how many messages of each member came, until the next call.
func (l *layer) received() []uint64 {
	for q := range l.lines {
		l.have[q] = l.lines[q].received()
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

// send broadcasts the next own message if there is one, and fewer than W are not known to
// be with all.
func (l *layer) send(s *parley.Step) bool {
	own := &l.lines[l.Self]
	if len(l.queue) == 0 || own.received()-l.stable(l.Self) >= uint64(l.c.Window) {
		return false
	}
	r := l.queue[0]
	l.queue = slices.Delete(l.queue, 0, 1)
	h := held{level: r.level, body: r.body}
	if r.level == Causal {
		h.need = make([]uint64, l.n)
		for q := range h.need {
			h.need[q] = l.lines[q].top
		}
		h.need[l.Self] = 0 // its number says that
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
		s.Append(appendMessage([]byte{holds}, message{name{q, l.lines[q].received() + 1}, h}))
	}
	l.lines[q].held = append(l.lines[q].held, h)
}

// Receive is DATA or ACK of another member.
func (l *layer) Receive(s *parley.Step, q parley.ID, m parley.Msg) (gap bool) {
	body, why := l.Open(q, m, l.lines[l.Self].received(), uint64(Causal), "no such number or level")
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
		if m.Seq != l.lines[q].received()+1 {
			return true
		}
		l.hold(s, q, h)
		urgent = h.level == Uniform || 2*(m.Seq-l.Acks[l.Self][q]) >= uint64(l.c.Window)
	}
	if l.Said(q) != l.lines[q].received() {
		return true
	}
	l.Note(q)
	if m.Kind == Data {
		l.Owe(s, l.received(), urgent)
	}
	l.settle(s)
	return false
}

// need reads what a causal message of q comes after. No member can have delivered more of
// another than that has sent, which is at most W beyond what has come from there.
func (l *layer) need(q parley.ID, b []byte) (need []uint64, body []byte, ok bool) {
	vec, body, ok := views.ReadVector(nil, b)
	if !ok || len(vec) != l.View.Members.Len() {
		return nil, nil, false
	}
	need = make([]uint64, l.n)
	rank := 0
	for id := range l.View.Members.All() {
		need[id] = vec[rank]
		if id == q && vec[rank] != 0 || vec[rank] > l.lines[id].received()+uint64(l.c.Window) {
			return nil, nil, false
		}
		rank++
	}
	return need, body, true
}

// Timeout ends a batch, or begins with what waits.
func (l *layer) Timeout(s *parley.Step, t parley.Timer) {
	l.Flush(s, t, l.received())
	l.settle(s)
}

// settle delivers what can be, lets go of what is with all, and sends what then may be.
func (l *layer) settle(s *parley.Step) {
	for sent := true; sent; sent = l.send(s) {
		l.release(s, false)
		for q := range l.View.Members.All() {
			if ln := &l.lines[q]; len(ln.held) > 0 {
				ln.forget(l.stable(q))
			}
		}
	}
}

// stable is how many messages of a member all members say that they hold.
func (l *layer) stable(sender parley.ID) uint64 {
	least := uint64(views.Limit)
	for q := range l.View.Members.All() {
		if q == l.Self {
			continue // it holds what it has
		}
		least = min(least, l.Acks[q][sender])
	}
	return min(least, l.lines[sender].received())
}

// release delivers messages that wait for nothing more, until there are none. At the end
// of a view (over) all that are here are with all who go on.
func (l *layer) release(s *parley.Step, over bool) {
	for more := true; more; {
		more = false
		for q := range l.lines {
			ln := &l.lines[q]
			for i := ln.done - ln.gone; i < uint64(len(ln.held)); i++ {
				id := name{parley.ID(q), ln.gone + i + 1}
				if h := &ln.held[i]; !h.delivered && l.ready(id, h, over) {
					if l.c.Durable && !over { // at the end of a view the cut says it
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

// ready tells whether a message can be delivered.
func (l *layer) ready(id name, h *held, over bool) bool {
	before := l.lines[id.sender].done >= id.seq-1
	switch h.level {
	case Reliable:
		return true
	case Uniform:
		return over || l.stable(id.sender) >= id.seq
	case FIFO:
		return before
	case Causal:
		for q, count := range h.need {
			before = before && l.lines[q].done >= count
		}
		return before
	}
	return false // a joiner has nothing of it but its place
}

// Waiting tells whether anything is not yet delivered: what is missing for that may have
// been the last message of a link that broke.
func (l *layer) Waiting() bool {
	return len(l.queue) > 0 || slices.ContainsFunc(l.lines, func(ln line) bool { return ln.done < ln.received() })
}

// Oldest is the oldest own message that is not known to be with all: the link to somebody
// may have lost it.
func (l *layer) Oldest() uint64 {
	if stable := l.stable(l.Self); stable < l.lines[l.Self].received() {
		return stable + 1
	}
	return 0
}
