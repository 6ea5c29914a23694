// Package bracha is reliable broadcast among liars: all correct processes deliver
// the same message of a sender, or none at all, although the sender itself may lie.
//
// The problem: what a correct process broadcasts, or delivers, all correct
// processes deliver; of a lying sender too they deliver, as its k-th broadcast, all
// the same or all nothing; and in the name of a correct one nothing that it did not
// broadcast.
//
// The model: asynchronous, Byzantine, oral: up to m processes do anything, links
// lose nothing and tell who is speaking, and no delay is known. The bound: n > 3m.
// Timing, a detector or signatures are not needed.
//
// Why it works: a process vouches (READY) for a value if more than (n+m)/2 echo it.
// Two such crowds share more than m processes, so a correct one, and that echoes one
// value only: no two correct processes ever vouch for different values, be n what it
// may. Or it vouches as m+1 others do, one of whom is correct. It delivers when 2m+1
// vouch. Then at least m+1 correct ones have, whom all others hear and join; and as
// n-m >= 2m+1 are correct all will deliver. Of a correct sender all n-m > (n+m)/2
// echo the value: this and the last inequality are where n > 3m is needed.
//
// It is uniform as far as the word has a meaning among liars: what one correct
// process delivers all do, even if it stops right afterwards and counts among the m.
//
// Memory: of each sender a process keeps up to Config.Window broadcasts, counted
// from the first one that it has not delivered. In each it keeps two sets, and the
// values that somebody echoed or vouched for, of which a liar adds two at most. What
// lies further ahead is refused. A sender broadcasts in the first third of its own
// window, and a process begins, which is to echo what comes from the sender, in the
// first two thirds: so nobody correct refuses what the others need as long as no
// correct process falls behind another by more than a third of a window of one
// sender's broadcasts. That is one more condition on the links. No bounded memory
// can do without one, for whoever is that slow needs what all others have forgotten.
//
// Not promised: any order; any life after a crash. Who restarts has forgotten what
// it vouched for, and might say the contrary: it is silent for ever, and counts as
// faulty.
//
// Source: Bracha, Asynchronous Byzantine agreement protocols (1987), section 2; the
// numbering of broadcasts and the window are this package's.
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
	// Echo says that its sender has had the value from the broadcast's sender, or has
	// reason to believe that others have.
	Echo
	// Ready vouches for the value: nobody correct will ever vouch for another.
	Ready
)

// process is one process.
type process struct {
	parley.Base
	c Config

	mute    bool     // it has come back after a crash
	sent    uint64   // broadcasts of its own
	waiting [][]byte // payloads to be broadcast when the window lets them
	senders []stream
}

// stream is what a process knows of the broadcasts of one sender.
type stream struct {
	low  uint64 // all up to this one are delivered
	open []cast // those that follow, of any of which something came
}

// cast is one broadcast.
type cast struct {
	echoed, readied, delivered bool
	echoes, readies            parley.Set // who sent an echo, and who vouched, for whatever value
	votes                      []vote     // by value, in order
}

// vote counts who spoke for a value.
type vote struct {
	value           []byte
	echoes, readies int
}

// Start: who was there before is silent.
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

// next broadcasts what waits, as far as the others begin it.
func (p *process) next(s *parley.Step) {
	for len(p.waiting) > 0 && p.sent < p.senders[s.Self].low+p.ahead(1) {
		m := parley.Msg{Kind: Initial, Origin: s.Self, Body: p.waiting[0]}
		p.waiting = slices.Delete(p.waiting, 0, 1)
		p.sent++
		m.Seq = p.sent
		s.SendAll(m)
		p.take(s, s.Self, m)
	}
}

// ahead is how far ahead of what is delivered the broadcasts of a sender may be, in
// thirds of the window: 1 to be made, 2 to be begun, 3 to be helped with.
func (p *process) ahead(thirds int) uint64 {
	return uint64(p.c.Window - (3-thirds)*(p.c.Window/3))
}

// Receive.
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

// take counts a message and goes on as far as that allows.
func (p *process) take(s *parley.Step, from parley.ID, m parley.Msg) {
	q := &p.senders[m.Origin]
	if m.Seq <= q.low {
		return // delivered: the others do not need my help any more
	}
	ahead := m.Seq - q.low // from 1
	if ahead > p.ahead(3) || m.Kind == Initial && ahead > p.ahead(2) {
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

// echo sends (echo, v) to all, oneself included.
func (p *process) echo(s *parley.Step, m parley.Msg, c *cast, v *vote) {
	c.echoed = true
	s.SendAll(parley.Msg{Kind: Echo, Origin: m.Origin, Seq: m.Seq, Body: v.value})
	c.echoes.Add(s.Self)
	v.echoes++
}

// at returns the broadcast so far ahead of what is delivered, from 1, and makes
// room for it and those before it in memory that was used before.
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

// advance forgets what is delivered, in the sender's order.
func (q *stream) advance() {
	for len(q.open) > 0 && q.open[0].delivered {
		first := q.open[0]
		first.reset()
		copy(q.open, q.open[1:])
		q.open[len(q.open)-1] = first // its memory is for the next one
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
