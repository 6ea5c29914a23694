// Package bracha implements reliable broadcast among processes that may lie. Even if the sender of a message lies,
// all correct processes deliver the same message, or all deliver nothing.
//
// The problem: if a correct process broadcasts or delivers a message, all correct processes deliver it. For the
// k-th broadcast of a lying sender, all correct processes deliver the same message, or all deliver nothing. Correct
// processes deliver a message of a correct sender only if that sender has broadcast it.
//
// The model: asynchronous messages. Up to m processes are Byzantine, that is, they may do anything. Messages are oral
// (unsigned). Links lose no messages, and tell the receiver which process sent a message. The bound: n > 3m. The
// protocol needs no timing, no detector and no signatures.
//
// The sender sends its value to all (INITIAL). Each process echoes one value (ECHO): the first value that it receives
// from the sender, or a value that enough other processes echo or vouch for. A process vouches for a value (READY)
// when more than (n+m)/2 processes echo the value, or when m+1 processes vouch for it. It delivers the value when
// 2m+1 processes vouch for it.
//
// Why it works: two sets of more than (n+m)/2 processes share more than m processes. So they share a correct process,
// which echoes only one value. Therefore correct processes never vouch for different values because of echoes. The
// rule of m+1 processes adds no other value, because at least one of m+1 processes is correct. This holds for any n.
//
// If a correct process delivers a value, at least m+1 correct processes have vouched for it. All other correct
// processes receive these messages, and also vouch for the value. At least n-m processes are correct, and n-m >=
// 2m+1, so all correct processes deliver the value. If the sender is correct, all correct processes echo its value.
// These are enough, because n-m > (n+m)/2. Both inequalities hold because n > 3m.
//
// The protocol is uniform in one sense. Suppose that a process delivers a message while it still follows the
// protocol, and then crashes. All correct processes deliver this message, too. The deliveries of a liar have no
// meaning.
//
// Memory: for each sender a process keeps a window of up to Config.Window broadcasts. The window begins at the
// first broadcast that the process has not delivered. For each broadcast the process keeps two sets of processes,
// and the values that they echoed or vouched for. A liar can add at most two of these values.
//
// A process refuses broadcasts beyond its window. A sender broadcasts only in the first third of its own window. A
// process answers INITIAL with ECHO only in the first two thirds of its window. So no correct process refuses a
// message that others need. This holds on one condition: in the broadcasts of each sender, no correct process is more
// than a third of a window behind another. This is one more condition on the links. Every protocol with bounded
// memory needs such a condition, because a slow process may need messages that all others have deleted.
//
// The protocol promises no order. It promises nothing about a process that restarts. A restarted process does not
// know for which values it vouched before, and might vouch for other values. So it stays silent forever, and counts
// as faulty.
//
// Source: Bracha, Asynchronous Byzantine agreement protocols (1987), section 2. The numbering of broadcasts and the
// window are additions of this package.
package bracha

import (
	"bytes"
	"slices"

	"parley"
)

// The messages. Origin: the sender of the broadcast. Seq: the number of the broadcast among the broadcasts of this
// sender, from 1. Body: the value, which is the payload.
const (
	// Initial comes from the sender itself.
	Initial parley.Kind = iota + 1
	// Echo reports that its sender has received the value from the sender of the broadcast, or that enough other
	// processes echo it or vouch for it.
	Echo
	// Ready vouches for the value: no correct process will ever vouch for another.
	Ready
)

type process struct {
	parley.Base
	c Config

	mute    bool     // it has restarted after a crash
	sent    uint64   // own broadcasts
	waiting [][]byte // payloads that wait for the window
	senders []stream
}

// stream is what a process knows about the broadcasts of one sender.
type stream struct {
	low  uint64 // all up to this one are delivered
	open []cast // the following ones, up to the last for which a message arrived
}

// cast is one broadcast.
type cast struct {
	echoed, readied, delivered bool
	echoes, readies            parley.Set // processes that sent an echo or vouched, for any value
	votes                      []vote     // by value, in order
}

// vote counts the processes that spoke for a value.
type vote struct {
	value           []byte
	echoes, readies int
}

// Start: a restarted process is silent.
func (p *process) Start(s *parley.Step) { p.mute = s.Restart }

// Request: to broadcast v, send (initial, v) to all.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	if p.mute || m.Kind != parley.Carried || len(m.Body) > p.c.Limit {
		s.Refuse(s.Self, "no request to broadcast, or too large")
		return
	}
	p.waiting = append(p.waiting, m.Body)
	p.next(s)
}

// next broadcasts what waits, within the part of the window in which the others accept INITIAL.
func (p *process) next(s *parley.Step) {
	for len(p.waiting) > 0 && p.sent < p.senders[s.Self].low+p.windowLimit(1) {
		m := parley.Msg{Kind: Initial, Origin: s.Self, Body: p.waiting[0]}
		p.waiting = slices.Delete(p.waiting, 0, 1)
		p.sent++
		m.Seq = p.sent
		s.SendAll(m)
		p.take(s, s.Self, m)
	}
}

// windowLimit returns how far ahead of the last delivery the broadcasts of a sender may be, by thirds of the
// window: 1 to broadcast, 2 to accept INITIAL, 3 to accept ECHO and READY.
func (p *process) windowLimit(thirds int) uint64 {
	return uint64(p.c.Window - (3-thirds)*(p.c.Window/3))
}

func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case p.mute || m.Kind >= parley.Local:
	case m.Kind < Initial || m.Kind > Ready || int(m.Origin) >= p.c.N || m.Seq == 0 || m.Value != 0 ||
		len(m.Body) > p.c.Limit || m.Kind == Initial && from != m.Origin:
		s.Refuse(from, "malformed message")
	default:
		p.take(s, from, m)
		p.next(s)
	}
}

// take counts a message and takes the steps that it allows.
func (p *process) take(s *parley.Step, from parley.ID, m parley.Msg) {
	q := &p.senders[m.Origin]
	if m.Seq <= q.low {
		return // delivered: the others no longer need this process's messages
	}
	ahead := m.Seq - q.low // from 1
	if ahead > p.windowLimit(3) || m.Kind == Initial && ahead > p.windowLimit(2) {
		s.Refuse(from, "past the window")
		return
	}
	c := q.at(ahead)
	switch m.Kind {
	case Initial:
		// Step 1: upon (initial, v) from the sender, the first one: send (echo, v) to all.
		if !c.echoed {
			p.echo(s, m, c, c.of(m.Body))
			p.weigh(s, m, c, c.of(m.Body))
		}
	case Echo:
		if !c.echoes.Add(from) {
			return // each process has one echo
		}
		v := c.of(m.Body)
		v.echoes++
		p.weigh(s, m, c, v)
	case Ready:
		if !c.readies.Add(from) {
			return
		}
		v := c.of(m.Body)
		v.readies++
		p.weigh(s, m, c, v)
	}
	q.advance()
}

// weigh takes the steps that the votes for a value allow.
func (p *process) weigh(s *parley.Step, m parley.Msg, c *cast, v *vote) {
	n, f := p.c.N, p.c.M
	// Step 1, too: upon more than (n+m)/2 (echo, v), or m+1 (ready, v): send (echo, v)
	// to all, unless an echo was sent.
	if !c.echoed && (2*v.echoes > n+f || v.readies >= f+1) {
		p.echo(s, m, c, v)
	}
	// Step 2: upon more than (n+m)/2 (echo, v), or m+1 (ready, v): send (ready, v) to all.
	if !c.readied && (2*v.echoes > n+f || v.readies >= f+1) {
		c.readied = true
		s.SendAll(parley.Msg{Kind: Ready, Origin: m.Origin, Seq: m.Seq, Body: v.value})
		c.readies.Add(s.Self)
		v.readies++
	}
	// Step 3: upon 2m+1 (ready, v): accept v.
	if !c.delivered && v.readies >= 2*f+1 {
		c.delivered = true
		s.Deliver(m.Origin, parley.Msg{Kind: parley.Carried, Origin: m.Origin, Seq: m.Seq, Body: v.value})
	}
}

// echo sends (echo, v) to all, and counts the process's own.
func (p *process) echo(s *parley.Step, m parley.Msg, c *cast, v *vote) {
	c.echoed = true
	s.SendAll(parley.Msg{Kind: Echo, Origin: m.Origin, Seq: m.Seq, Body: v.value})
	c.echoes.Add(s.Self)
	v.echoes++
}

// at returns the broadcast that is ahead of the last delivery by the given number, from 1. It makes room for
// it and those before it, and reuses memory.
func (q *stream) at(ahead uint64) *cast {
	for uint64(len(q.open)) < ahead {
		if len(q.open) < cap(q.open) {
			q.open = q.open[:len(q.open)+1]
			q.open[len(q.open)-1].reset()
		} else {
			q.open = append(q.open, cast{})
		}
	}
	return &q.open[ahead-1]
}

// advance drops delivered broadcasts, in the sender's order.
func (q *stream) advance() {
	for len(q.open) > 0 && q.open[0].delivered {
		first := q.open[0]
		first.reset()
		copy(q.open, q.open[1:])
		q.open[len(q.open)-1] = first // keep its memory for the next one
		q.open = q.open[:len(q.open)-1]
		q.low++
	}
}

// of returns the votes for a value.
func (c *cast) of(value []byte) *vote {
	for i := range c.votes {
		if bytes.Equal(c.votes[i].value, value) {
			return &c.votes[i]
		}
	}
	i := 0
	for i < len(c.votes) && bytes.Compare(c.votes[i].value, value) < 0 {
		i++
	}
	c.votes = slices.Insert(c.votes, i, vote{value: value})
	return &c.votes[i]
}

func (c *cast) reset() {
	clear(c.votes)
	*c = cast{votes: c.votes[:0]}
}

func (p *process) State(v *parley.Vars) {
	v.Bool("mute", &p.mute)
	parley.Num(v, "sent", &p.sent)
	parley.Slice(v, "waiting", &p.waiting, func(_ int, b *[]byte) { v.Bytes("payload", b) })
	parley.PerProcess(v, "sender", p.senders, func(_ parley.ID, q *stream) {
		parley.Num(v, "low", &q.low)
		parley.Slice(v, "open", &q.open, func(_ int, c *cast) {
			v.Bool("echoed", &c.echoed)
			v.Bool("readied", &c.readied)
			v.Bool("delivered", &c.delivered)
			v.Set("echoes", &c.echoes)
			v.Set("readies", &c.readies)
			parley.Slice(v, "votes", &c.votes, func(_ int, x *vote) {
				v.Bytes("value", &x.value)
				parley.Num(v, "echoes", &x.echoes)
				parley.Num(v, "readies", &x.readies)
			})
		})
	})
}
