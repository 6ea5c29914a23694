// Package fifo is FIFO broadcast on top of any reliable broadcast: messages carry
// the sender's own sequence numbers, and who receives one early puts it into a bag.
//
// The problem: FIFO broadcast. It is reliable broadcast, and if a process broadcasts
// m before m', no correct process delivers m' unless it has delivered m before.
//
// The model is that of the broadcast beneath: asynchronous, with crashes. What that
// promises of validity and agreement, uniform or not, holds here as well, since a
// process of one life broadcasts all before m' before m', so that no gap lasts. A gap
// is never skipped: behind one that does last, because something was lost in spite
// of the model, nothing more of that life of the sender is delivered.
//
// Why it works: next[q] numbers the one message of q that may be delivered, and it
// goes up by one with each delivery.
//
// Lives: a process that comes back after a crash begins with number 1 in its next
// incarnation, and that is a sender of its own. What it broadcast before and what it
// broadcasts then is in no order; no receiver could tell whether the last message
// before a crash was ever sent. A receiver that comes back begins with an empty state
// as well: of those who broadcast before it delivers nothing until they start anew.
//
// Bounds: the bag holds at most Config.Window messages of one life of a sender, those
// with the next numbers. One further ahead is refused and, as the layer beneath
// delivers once, lost: a window as large as that of the layer beneath never is too
// small. The last problem.MaxLives incarnations of a process are remembered.
//
// The lecture's pseudocode is read with the removal from the bag inside the loop,
// else all but the last would stay in it; with numbers of the layer's own, as other
// messages of the layer beneath would leave gaps; and numbers below next[q] are
// dropped.
//
// Source: the lecture on broadcast, FIFO broadcast built on reliable broadcast.
package fifo

import (
	"cmp"
	"slices"

	"parley"
	"parley/broadcast/problem"
)

// Data is a message of an F-broadcast. It is R-broadcast, never sent on a link; the
// sender is told by the layer beneath. Value: the sender's incarnation, from 1. Seq:
// its number among what the sender F-broadcast in that life, from 1. Body: the
// payload.
const Data parley.Kind = 1

// process is one process.
type process struct {
	parley.Base
	c Config

	me     problem.Incarnation
	seq    uint64                  // of the last message that it broadcast in this life
	sender []problem.Lives[stream] // by sender
}

// stream is what comes from one life of a sender.
type stream struct {
	delivered uint64                        // next[q] - 1
	bag       problem.Sorted[uint64, early] // by number
}

// early is a message in the bag, R-delivered but not yet F-delivered.
type early struct {
	seq  uint64
	body []byte
}

func (e early) Compare(seq uint64) int { return cmp.Compare(e.seq, seq) }

// Start: next[q] = 1 for all q, and an empty bag; both are so when a life of q is
// first heard of.
func (p *process) Start(s *parley.Step) { p.me.Begin(s) }

// Request: to execute broadcast(F, m), execute broadcast(R, m).
func (p *process) Request(s *parley.Step, m parley.Msg) {
	if m.Kind != parley.Carried {
		s.Refuse(s.Self, "request that is no broadcast")
		return
	}
	p.seq++
	s.Broadcast(parley.Msg{Kind: Data, Seq: p.seq, Value: uint64(p.me), Body: m.Body})
}

// Receive: upon deliver(R, m), where q = sender(m).
func (p *process) Receive(s *parley.Step, q parley.ID, m parley.Msg) {
	if m.Kind >= parley.Local {
		return // an indication
	}
	if m.Kind != Data || int(q) >= s.N || m.Origin != 0 || m.Seq == 0 {
		s.Refuse(q, "no message of a broadcast")
		return
	}
	f := p.sender[q].At(m.Value)
	switch {
	case f == nil:
		s.Refuse(q, "message of a life long past")
	case m.Seq <= f.delivered:
		s.Refuse(q, "message delivered before")
	case m.Seq-f.delivered > uint64(p.c.Window):
		s.Refuse(q, "message past the window")
	default:
		// msgBag := msgBag + {m}
		if _, fresh := f.bag.Put(m.Seq, early{m.Seq, m.Body}); !fresh {
			s.Refuse(q, "message already in the bag")
			return
		}
		f.release(s, q)
	}
}

// release: while there is m' in msgBag with sender q and seq#(m') = next[q], deliver
// m', let next[q] be next[q] + 1 and take m' out of the bag.
func (f *stream) release(s *parley.Step, q parley.ID) {
	n := 0
	for n < len(f.bag) && f.bag[n].seq == f.delivered+1 {
		s.Deliver(q, parley.Msg{Kind: parley.Carried, Origin: q, Body: f.bag[n].body})
		f.delivered++
		n++
	}
	f.bag = slices.Delete(f.bag, 0, n)
}

func (p *process) State(v *parley.Vars) {
	p.me.State(v)
	parley.Num(v, "seq", &p.seq)
	parley.PerProcess(v, "from", p.sender, func(_ parley.ID, of *problem.Lives[stream]) {
		of.State(v, func(f *stream) {
			parley.Num(v, "delivered", &f.delivered)
			parley.Slice(v, "bag", (*[]early)(&f.bag), func(_ int, e *early) {
				parley.Num(v, "seq", &e.seq)
				v.Bytes("body", &e.body)
			})
		})
	})
}

// Next returns the number of the message of q, in q's given life, that the machine
// will deliver next, and the numbers of those in its bag.
func Next(m parley.Machine, q parley.ID, life uint64) (next uint64, bag []uint64) {
	f := m.(*process).sender[q].Known(life)
	if f == nil {
		return 1, nil
	}
	for _, e := range f.bag {
		bag = append(bag, e.seq)
	}
	return f.delivered + 1, bag
}
