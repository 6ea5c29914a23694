// Package forwarding implements reliable broadcast along a tree: a process forwards a message only to its children.
// When processes crash, the remaining processes take over their duties.
//
// The problem: if a correct process broadcasts or delivers a message, all correct processes deliver it exactly
// once, even if processes crash in the middle of forwarding.
//
// The model: crashes, and asynchronous messages. The bound: any number of crashes, up to n-1, if links lose nothing
// and every remaining process eventually suspects every crashed process. The layer receives suspicions from a
// detector in the layer below, as in stack.New(detector, forwarding), or from the host. A suspicion may be false. A
// false suspicion costs additional messages but breaks no property, because suspected processes still get all
// messages.
//
// Without faults a process sends only to its children, and a broadcast takes n-1 messages and n-1 acknowledgements.
// Diffusion takes n(n-1)+1 messages.
//
// Why it works: a process acknowledges a message when every process below it in the tree holds the message or has
// crashed. Until then the parent of the process also holds the message. If the parent suspects the process, the
// parent stands in for it: the parent serves the children of the process. If the parent suspects one of these
// children, too, the parent serves the children of that child, and so on.
//
// Processes also stand in for the root. If a process holds the message, and suspects all processes above it,
// including the root, it serves the tree from the root down in the same way.
//
// Now suppose that a correct process holds the message. On its way down, the message was sent to every process on the
// path from the root to this process. So the uppermost correct process on this path holds the message. This process
// is the root, or it stands in for the root. So the message is sent down every branch until it reaches the first
// correct process, and that process serves the rest of the branch. The message carries the whole tree, because a
// process that stands in must know the tree.
//
// A broadcast is complete when each child of the root has acknowledged, or has failed and been replaced. Then no
// process needs to hold the message any longer. The other processes learn this in one of two ways, which are both
// from the lecture. By default, each message says up to which number the broadcasts of its sender are complete. So
// the next broadcast reports the completion of earlier broadcasts. With Config.Notice the root reports the completion
// in a separate message, which processes pass down the tree.
//
// In the lecture the broadcast is complete when the root has sent the message to all its children. This rule does not
// tolerate two crashes. If a child crashes before it forwards the message, and then the root crashes, no process
// serves the child's subtree.
//
// A message is identified by its sender, by the incarnation of the sender, and by a number. The incarnation number is
// durable: a restarted process numbers its broadcasts from 1 in a new incarnation, and the others treat it as a new
// process. A process that loses its disk also loses its incarnation number. Then it must not use its old name.
//
// The protocol promises no uniformity. For example, the root crashes, and a leaf is the only other process with the
// message. The leaf may deliver the message and then crash. The protocol promises no order, and a restarted process
// does not get the messages that it missed. If links lose messages, nothing is promised, because the protocol never
// resends a message.
//
// Source: the lecture (docs/explanation/sources.md), reliable broadcast by message forwarding. This package assumes
// that a process acknowledges (step 2 of the lecture) only after its children have acknowledged (step 3).
package forwarding

import (
	"cmp"
	"math"

	"parley"
	"parley/broadcast/problem"
)

// The messages. Origin: the sender of the broadcast, which is the root of its tree.
const (
	// Data is the broadcast. Seq: its number in this incarnation of the sender, from 1. Value: the incarnation. Body:
	// the number up to which the sender's broadcasts are complete, as a varint; for each process one byte that names
	// its parent in the tree (the root names itself); the payload.
	Data parley.Kind = iota + 1
	// Ack reports that every process below its sender in the tree has the message or has crashed. Seq, Value: as in
	// Data.
	Ack
	// Done reports that all broadcasts up to Seq in incarnation Value are complete.
	Done
	// Hello reports that its sender, which is Origin, has restarted in incarnation Value.
	Hello
)

// trust is the indication by which a detector revokes a suspicion.
const trust = parley.Indication + 0x10

// New returns the protocol. It panics if c is invalid.
func New(c Config) parley.Protocol {
	c.Window, c.Fanout = cmp.Or(c.Window, 64), cmp.Or(c.Fanout, 2)
	t, err := c.check()
	if err != nil {
		panic("forwarding: " + err.Error())
	}
	return parley.Protocol{
		Name:       "forwarding",
		Title:      "reliable broadcast by forwarding along a tree",
		Paper:      "lecture, reliable broadcast by message forwarding",
		Faults:     parley.CrashFaults,
		Kinds:      []string{"", "DATA", "ACK", "DONE", "HELLO"},
		N:          c.N,
		M:          c.N - 1,
		Serves:     true,
		Properties: problem.Of(problem.Validity, problem.Agreement, problem.Integrity, problem.Delivery),
		Promises:   promises,
		Cost:       func(n, _ int) parley.Cost { return cost(c, n) },
		Size:       func(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{Messages: 1} },
		Explain:    explain(c),
		New: func(self parley.ID) parley.Machine {
			return &process{c: c, self: self, shape: t.of(self, c.Root), senders: make([]problem.Lives[life], c.N)}
		},
		Flags: parley.Flags(c, flags, New),
	}
}

type process struct {
	parley.Base
	c     Config
	self  parley.ID
	shape tree // of this process's own broadcasts

	me        problem.Incarnation
	sent      uint64 // own broadcasts in this incarnation
	waiting   [][]byte
	suspected parley.Set
	senders   []problem.Lives[life] // by sender
}

// Start begins a new incarnation, and announces it if there was one before.
func (p *process) Start(s *parley.Step) {
	if s.Restart {
		p.me = max(p.me, 1) // it may have crashed before anything was durable
	}
	p.me.Begin(s)
	if s.Restart {
		s.SendAll(parley.Msg{Kind: Hello, Origin: p.self, Value: uint64(p.me)})
	}
}

// Request: to broadcast m, the root sends it to its children.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	if m.Kind != parley.Carried {
		s.Refuse(s.Self, "no request to broadcast")
		return
	}
	p.waiting = append(p.waiting, m.Body)
	p.next(s)
}

// next broadcasts what waits, as long as the window has room.
func (p *process) next(s *parley.Step) {
	for len(p.waiting) > 0 {
		l := p.lifeOf(p.self, uint64(p.me))
		if p.sent-l.done >= uint64(p.c.Window) {
			return
		}
		payload := p.waiting[0]
		p.waiting = p.waiting[1:]
		p.sent++
		l.seen.Add(p.sent)
		c := newCast(p.sent, body(l.done, p.shape, payload), p.c.N, p.suspected)
		l.held.Put(c.seq, c)
		p.serve(s, p.self, l, c)
		s.Deliver(p.self, parley.Msg{Kind: parley.Carried, Origin: p.self, Body: payload})
		p.settle(s, p.self, l, c)
	}
}

func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind == parley.Suspect:
		p.suspect(s, m.Origin)
	case m.Kind == trust:
		p.suspected.Remove(m.Origin) // for later broadcasts
	case m.Kind >= parley.Local:
	case int(m.Origin) >= p.c.N || m.Value == 0 || m.Kind != Hello && m.Seq == 0 || m.Kind != Data && len(m.Body) > 0:
		s.Refuse(from, "malformed message")
	case m.Kind == Data:
		p.data(s, from, m)
	case m.Kind == Ack:
		p.ack(s, from, m)
	case m.Kind == Done:
		p.done(s, from, m)
	case m.Kind == Hello && from == m.Origin && m.Seq == 0:
		p.lived(s, from, m.Value)
	default:
		s.Refuse(from, "malformed message")
	}
	p.next(s)
}

// data: upon receiving a message, a process sends it to all its children; it drops a second copy, by (sender,
// incarnation, number), and only acknowledges it.
func (p *process) data(s *parley.Step, from parley.ID, m parley.Msg) {
	complete, t, payload, ok := read(m.Body, p.c.N)
	if !ok || t.check(m.Origin) != nil || m.Origin == p.self {
		s.Refuse(from, "no tree, or my own")
		return
	}
	l := p.lived(s, m.Origin, m.Value)
	if l == nil {
		s.Refuse(from, "life long gone")
		return
	}
	l.complete(complete)
	ack := parley.Msg{Kind: Ack, Origin: m.Origin, Seq: m.Seq, Value: m.Value}
	if !l.seen.Add(m.Seq) {
		s.Refuse(from, "duplicate")
		if c := l.find(m.Seq); c != nil && !c.served {
			c.owed.Add(from)
		} else {
			s.Send(from, ack)
		}
		return
	}
	l.seen.Fill(gaps)
	c := newCast(m.Seq, m.Body, p.c.N, p.suspected)
	c.owed.Add(from)
	if m.Value < p.newest(m.Origin) {
		c.failed.Add(m.Origin) // that incarnation has ended
	}
	l.held.Put(c.seq, c)
	p.serve(s, m.Origin, l, c)
	s.Deliver(m.Origin, parley.Msg{Kind: parley.Carried, Origin: m.Origin, Body: payload})
	p.settle(s, m.Origin, l, c)
}

// ack: a child has served all below it.
func (p *process) ack(s *parley.Step, from parley.ID, m parley.Msg) {
	l := p.senders[m.Origin].Known(m.Value)
	if l == nil {
		return
	}
	if c := l.find(m.Seq); c != nil {
		c.acked.Add(from)
		p.settle(s, m.Origin, l, c)
	}
}

// done: the root reports that all its broadcasts up to one are complete. A process to which that is new
// informs its children.
func (p *process) done(s *parley.Step, from parley.ID, m parley.Msg) {
	l := p.senders[m.Origin].Known(m.Value)
	if l == nil || m.Origin == p.self {
		s.Refuse(from, "notice of nothing known")
		return
	}
	if last := l.complete(m.Seq); last != nil {
		p.sendNotice(s, m.Origin, l, last)
	}
}

// suspect: a process that gets no acknowledgement because the other has failed takes over the other's duties,
// in everything that is not complete.
func (p *process) suspect(s *parley.Step, q parley.ID) {
	if q == p.self || int(q) >= p.c.N {
		return
	}
	p.suspected.Add(q)
	p.replace(s, q, math.MaxUint64)
}

// lived records an incarnation of a process. If a new one has begun, others must take over the duties of the
// earlier ones. It returns nil for a forgotten incarnation.
func (p *process) lived(s *parley.Step, q parley.ID, number uint64) *life {
	before := p.newest(q)
	l := p.lifeOf(q, number)
	if number > max(before, 1) {
		p.replace(s, q, number)
	}
	return l
}

func (p *process) State(v *parley.Vars) {
	p.me.State(v)
	parley.Num(v, "sent", &p.sent)
	parley.Slice(v, "waiting", &p.waiting, func(_ int, b *[]byte) { v.Bytes("payload", b) })
	v.Set("suspected", &p.suspected)
	parley.PerProcess(v, "sender", p.senders, func(_ parley.ID, of *problem.Lives[life]) {
		of.State(v, func(l *life) { l.state(v, p.c.N) })
	})
}
