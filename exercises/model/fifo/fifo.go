// Package fifo is one process of FIFO broadcast on top of reliable broadcast.
//
// The layer beneath carries each broadcast to all processes, also to the sender, exactly once, and in any order.
package fifo

import (
	"cmp"
	"slices"

	"parley"
)

// Data is the only kind of message. Seq: the number of the message among those of its sender, from 1. Body: the
// payload.
const Data parley.Kind = 1

// New returns the machine of a process, of n.
func New(n int, _ parley.ID) parley.Machine { return &machine{next: slices.Repeat([]uint64{1}, n)} }

// machine is a process. If you add a field that changes, let State visit it.
type machine struct {
	parley.Base
	sent uint64   // how many messages this process has broadcast
	next []uint64 // by sender: the number of the message that is delivered next
	bag  []early  // the messages that came too early, sorted by sender and number
}

type early struct {
	from parley.ID
	seq  uint64
	body []byte
}

// put puts a message into the bag.
func (p *machine) put(e early) {
	i, found := slices.BinarySearchFunc(p.bag, e, func(a, b early) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.seq, b.seq))
	})
	if !found {
		p.bag = slices.Insert(p.bag, i, e)
	}
}

// take takes a message out of the bag, and reports whether it was there.
func (p *machine) take(from parley.ID, seq uint64) (body []byte, ok bool) {
	i := slices.IndexFunc(p.bag, func(e early) bool { return e.from == from && e.seq == seq })
	if i < 0 {
		return nil, false
	}
	body = p.bag[i].body
	p.bag = slices.Delete(p.bag, i, i+1)
	return body, true
}

// deliver delivers a payload.
func (p *machine) deliver(s *parley.Step, from parley.ID, body []byte) {
	s.Deliver(from, parley.Msg{Kind: parley.Carried, Origin: from, Body: body})
}

// Request handles the request to broadcast a payload.
func (p *machine) Request(s *parley.Step, m parley.Msg) {
	if m.Kind != parley.Carried {
		s.Refuse(s.Self, "not a request to broadcast")
		return
	}
	// hole: Number the message, and have the layer beneath carry it: see s.Broadcast.
	p.sent++
	s.Broadcast(parley.Msg{Kind: Data, Seq: p.sent, Body: m.Body})
	// end of hole
}

// Receive handles a message that the layer beneath has carried here.
func (p *machine) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Kind >= parley.Local {
		return // an indication of the layer beneath
	}
	if m.Kind != Data || int(from) >= s.N {
		s.Refuse(from, "not a message of a broadcast")
		return
	}
	// hole: Deliver the messages of each sender in the order of their numbers, without a gap. Keep a message that comes
	// too early, and deliver it when its turn comes. See put, take, and deliver.
	p.put(early{from, m.Seq, m.Body})
	for {
		body, ok := p.take(from, p.next[from])
		if !ok {
			return
		}
		p.next[from]++
		p.deliver(s, from, body)
	}
	// end of hole
}

// State visits every field that changes. The explorer needs it to tell states apart.
func (p *machine) State(v *parley.Vars) {
	parley.Num(v, "sent", &p.sent)
	parley.PerProcess(v, "next", p.next, func(_ parley.ID, n *uint64) { parley.Num(v, "number", n) })
	parley.Slice(v, "bag", &p.bag, func(_ int, e *early) {
		v.ID("from", &e.from)
		parley.Num(v, "seq", &e.seq)
		v.Bytes("body", &e.body)
	})
}
