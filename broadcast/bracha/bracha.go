// Package bracha is reliable broadcast among liars: all correct processes deliver the same message of a
// sender, or none, although the sender itself may lie.
//
// The problem: all correct processes deliver what a correct process broadcasts or delivers. For the k-th
// broadcast of a lying sender, they also all deliver the same message, or all deliver nothing. Under the name
// of a correct sender they deliver only what that sender broadcast.
//
// The model: asynchronous, Byzantine, oral: up to m processes do anything, links lose nothing and name the
// sender, and no delay is known. The bound: n > 3m. The protocol needs no timing, no detector and no
// signatures.
//
// Why it works: a process vouches (READY) for a value if more than (n+m)/2 echo it. Two such sets share more
// than m processes, so they share a correct process, which echoes only one value. So no two correct processes
// ever vouch for different values, whatever n is. A process also vouches when m+1 others vouch, because at
// least one of these is correct. It delivers when 2m+1 processes vouch. Then at least m+1 correct processes
// have vouched. All others receive that, and vouch too. Because n-m >= 2m+1 processes are correct, all
// correct processes will deliver. If the sender is correct, all n-m correct processes echo its value, and n-m
// > (n+m)/2. Both inequalities need n > 3m.
//
// The protocol is uniform in the only sense that is possible among liars. If a process delivers while it
// still follows the protocol, all correct processes deliver the same, even if that process crashes
// immediately afterwards.
//
// Memory: for each sender a process keeps up to Config.Window broadcasts, counted from the first one that it
// has not delivered. For each broadcast it keeps two sets, and the values that some process echoed or vouched
// for. A liar can add at most two of these values. The process refuses broadcasts beyond its window. A sender
// broadcasts in the first third of its own window. A process accepts INITIAL, and answers it with an echo, in
// the first two thirds. So no correct process refuses what the others need, as long as no correct process
// falls more than a third of a window behind another in one sender's broadcasts. That is one more condition
// on the links. Every protocol with bounded memory needs such a condition, because a slow process may need
// messages that all others have forgotten.
//
// Not promised: any order; anything about a process that restarts. It has forgotten which values it vouched
// for, and might vouch for others. So it is silent forever, and counts as faulty.
//
// Source: Bracha, Asynchronous Byzantine agreement protocols (1987), section 2; the numbering of broadcasts
// and the window are this package's.
package bracha

import (
	"bytes"
	"slices"

	"parley"
)

// The messages. Origin: the sender of the broadcast. Seq: its number among the
// sender's, from 1. Body: the value, which is the payload.
const (
	// Initial comes from the sender itself.
	Initial parley.Kind = iota + 1
	// Echo reports that its sender has received the value from the broadcast's sender, or has reason to
	// believe that others have.
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
