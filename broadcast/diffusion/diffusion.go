// Package diffusion implements reliable broadcast by message diffusion: a process that receives a message for the
// first time sends it to all its neighbors before it delivers it.
//
// The problem: reliable broadcast. If a correct process broadcasts or delivers a message, all correct processes
// deliver it. No process delivers a message twice, or a message that was not broadcast.
//
// The model: asynchronous messages. Any number of processes may crash, but a path of correct processes must connect
// every two correct processes. The links on this path must lose nothing. Links may duplicate and reorder messages.
// No process may lie: a liar could broadcast in the name of any other process. A process that restarts after a
// crash violates no property, but other processes do not resend the messages that it missed.
//
// Why it works: suppose that a correct process delivers a message. Consider the path from this process to any other
// correct process. Each process on the path sends the message to the next process before it delivers the message
// itself.
//
// The plain form is not uniform. Suppose that a process delivers a message and crashes. The copies that it sent may
// be lost in the crash, or may reach only neighbors that also crash. There is one exception: the plain form is
// uniform if all processes are neighbors, and if messages arrive even if their sender crashes. In this case a process
// has sent the message to all others before it delivers the message.
//
// With Config.Uniform, a process delivers a message only when it has received copies from more than half of all
// processes, itself included. If fewer than half of all processes crash, at least one of these copies is from a
// correct process. So all correct processes receive a copy from that process, relay it, and receive each other's
// copies. In the uniform form, all processes must be neighbors.
//
// Memory: sender, incarnation and sequence number identify a message. For each incarnation of a sender, a process
// stores which numbers it has delivered. It stores one number up to which it has delivered all messages. The next
// number is the first gap. For messages beyond the first gap, it stores ranges of numbers. It stores nothing else.
// If the number of a message is Config.Window or more beyond the first gap, the process refuses the message. The
// process can still deliver this message if another copy arrives after the gap has been filled. A gap does not
// last, because an incarnation of a sender sends its messages in the order of their numbers. So the window must be
// at least the number of messages that one sender can have in flight. A process remembers only the last
// problem.MaxLives incarnations of each process.
//
// Source: the lecture (docs/explanation/sources.md) on broadcast, reliable broadcast by message diffusion. The
// uniform form is the majority-acknowledgement algorithm of Cachin, Guerraoui and Rodrigues (2011), section 3.4.
package diffusion

import (
	"cmp"

	"parley"
	"parley/broadcast/problem"
)

// Data is a broadcast message in transit. Origin: its sender. Value: the sender's incarnation, from 1. Seq:
// its number among the broadcasts of that incarnation, from 1. Body: the payload.
const Data parley.Kind = 1

type process struct {
	parley.Base
	c Config

	me    problem.Incarnation
	seq   uint64                // of its last broadcast in this incarnation
	heard []problem.Lives[life] // by sender
}

// life is what a process knows about the messages of one incarnation of a sender.
type life struct {
	delivered problem.Numbers
	held      problem.Sorted[uint64, held] // uniform: received but not delivered, by number
}

// held is a message that waits for copies from more processes.
type held struct {
	seq    uint64
	copies parley.Set // the processes that have sent one
	body   []byte
}

func (h held) Compare(seq uint64) int { return cmp.Compare(h.seq, seq) }

func newProcess(c Config) *process {
	return &process{c: c, heard: make([]problem.Lives[life], c.N)}
}

// Start begins an incarnation.
func (p *process) Start(s *parley.Step) {
	p.me.Begin(s)
}

// Request: to broadcast m, tag it with sender(m) and seq#(m), which make it unique,
// and send it to all neighbours and to oneself.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	if m.Kind != parley.Carried {
		s.Refuse(s.Self, "request that is no broadcast")
		return
	}
	p.seq++
	tagged := parley.Msg{Kind: Data, Origin: s.Self, Seq: p.seq, Value: uint64(p.me), Body: m.Body}
	p.relay(s, tagged)
	s.Keep(tagged)
	p.arrive(s, s.Self, tagged)
}

func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind >= parley.Local: // an indication: diffusion uses no detector
	case m.Kind != Data || int(m.Origin) >= s.N || m.Seq == 0 || m.Value == 0:
		s.Refuse(from, "no message of a broadcast")
	case !p.neighbour(s, from):
		s.Refuse(from, "sender is no neighbour")
	case m.Origin == s.Self && (m.Value > uint64(p.me) || m.Value == uint64(p.me) && m.Seq > p.seq):
		s.Refuse(from, "message in one's own name")
	default:
		p.arrive(s, from, m)
	}
}

// arrive: upon receive(m): deliver m unless that was done before, and if m is not one's own send it to all
// neighbors first. A message of an earlier incarnation of this process counts like one of another process.
func (p *process) arrive(s *parley.Step, from parley.ID, m parley.Msg) {
	l := p.heard[m.Origin].At(m.Value)
	if l == nil {
		s.Refuse(from, "message of a life long past")
		return
	}
	if l.delivered.Has(m.Seq) {
		return
	}
	if m.Seq-l.delivered.Next() >= uint64(p.c.Window) {
		s.Refuse(from, "message past the window")
		return
	}
	own := m.Origin == s.Self && m.Value == uint64(p.me)
	if !p.c.Uniform {
		if !own {
			p.relay(s, m)
		}
		p.deliver(s, l, m)
		return
	}
	// Uniform: relay the first copy, count all copies, and deliver when more than half of the processes have
	// sent one. Relaying counts as sending one.
	h, first := l.held.Put(m.Seq, held{seq: m.Seq, body: m.Body})
	if first && !own {
		p.relay(s, m)
	}
	h.copies.Add(from)
	h.copies.Add(s.Self)
	if 2*h.copies.Len() > s.N {
		l.held.Drop(m.Seq)
		p.deliver(s, l, m)
	}
}

func (p *process) deliver(s *parley.Step, l *life, m parley.Msg) {
	l.delivered.Add(m.Seq)
	s.Deliver(m.Origin, parley.Msg{Kind: parley.Carried, Origin: m.Origin, Body: m.Body})
}

// relay sends m to all neighbors.
func (p *process) relay(s *parley.Step, m parley.Msg) {
	if len(p.c.Graph) == 0 {
		s.SendAll(m)
		return
	}
	s.SendTo(p.c.Graph[s.Self], m)
}

func (p *process) neighbour(s *parley.Step, from parley.ID) bool {
	return len(p.c.Graph) == 0 || p.c.Graph[s.Self].Has(from)
}

func (p *process) State(v *parley.Vars) {
	p.me.State(v)
	parley.Num(v, "seq", &p.seq)
	parley.PerProcess(v, "heard", p.heard, func(_ parley.ID, of *problem.Lives[life]) {
		of.State(v, func(l *life) { l.state(v) })
	})
}

func (l *life) state(v *parley.Vars) {
	l.delivered.State(v, "delivered")
	parley.Slice(v, "held", (*[]held)(&l.held), func(_ int, h *held) {
		parley.Num(v, "seq", &h.seq)
		v.Set("copies", &h.copies)
		v.Bytes("body", &h.body)
	})
}
