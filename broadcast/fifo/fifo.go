// Package fifo implements FIFO broadcast on top of any reliable broadcast. The sender numbers its messages. A
// receiver keeps the messages that arrive early in a bag (the lecture's word for a hold-back queue).
//
// The problem: FIFO broadcast is reliable broadcast with one more promise. If a process broadcasts m before m',
// every correct process that delivers m' has delivered m before.
//
// The protocol has the model of the broadcast in the layer below: asynchronous messages, and crashes. It keeps the
// validity and the agreement of that broadcast. If that broadcast is uniform, so is this protocol. A missing number
// (a gap) does not last, because an incarnation of a process broadcasts its messages in the order of their numbers. A
// receiver never skips a gap. In this model no message is lost. If a message is lost nevertheless, the receiver
// delivers no later message of that incarnation of the sender.
//
// Why it works: next[q] is the number of the message of process q that must be delivered next. It increases by one
// with each delivery, and no other message of q is delivered.
//
// Incarnations: a process that restarts after a crash begins with number 1 in its next incarnation, and each
// incarnation is a separate sender. There is no order between the broadcasts before and after the crash, because no
// receiver can know whether the last message before a crash was ever sent. A restarted receiver also begins with an
// empty state. It delivers nothing from incarnations that broadcast before its restart.
//
// Bounds: for each incarnation of a sender, the bag has room for the messages with the next Config.Window numbers.
// The receiver refuses messages with higher numbers. A refused message is lost, because the layer below delivers each
// message only once. A window as large as the window of the layer below is always large enough. A process remembers
// the last problem.MaxLives incarnations of each process.
//
// The protocol differs from the lecture's pseudocode in three ways. First, a message is removed from the bag inside
// the loop; otherwise the bag would keep all messages except the last one. Second, this layer numbers its own
// messages. The numbers of the layer below would have gaps, because that layer also numbers other messages. Third,
// messages with numbers below next[q] are dropped.
//
// Source: the lecture (docs/explanation/sources.md) on broadcast, FIFO broadcast built on reliable broadcast.
package fifo

import (
	"cmp"
	"slices"

	"parley"
	"parley/broadcast/problem"
)

// Data is a message of an F-broadcast. It is R-broadcast, never sent on a link. The layer below names the sender.
// Value: the sender's incarnation, from 1. Seq: its number among the F-broadcasts of that incarnation, from 1. Body:
// the payload.
const Data parley.Kind = 1

type process struct {
	parley.Base
	c Config

	me     problem.Incarnation
	seq    uint64                  // of its last broadcast in this incarnation
	sender []problem.Lives[stream] // by sender
}

// stream is what this process has received from one incarnation of a sender.
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

// Start: next[q] = 1 for all q, and an empty bag; both hold when an incarnation of q is first seen.
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

// showHeld shows the messages in the bag with what they wait for.
func (p *process) showHeld(shown *parley.Shown) {
	for q := range p.sender {
		for _, f := range p.sender[q].All() {
			for _, e := range f.bag {
				waits := problem.Missing(shown.Called(parley.ID(q)), f.delivered, e.seq-1)
				shown.Derive(problem.Held(parley.ID(q), e.seq, e.body, waits))
			}
		}
	}
}

func (p *process) State(v *parley.Vars) {
	if shown := v.Shown(); shown != nil {
		p.showHeld(shown)
	}
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

// Next returns the number of the message that the machine must deliver next from the given incarnation of q. It also
// returns the numbers of the messages of this incarnation in the bag.
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
