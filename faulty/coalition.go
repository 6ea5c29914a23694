// Package faulty makes processes faulty: they crash, omit messages, or lie.
//
// All faulty processes of a run, the members, form one [Coalition]. The coalition is one machine that takes the place
// of all members. A host clones and hashes it like any other machine. For each member, the coalition runs an honest
// copy of the protocol's machine, and holds back the messages that the copy sends. In each round it first waits for
// the messages of the correct processes (this is called rushing). Then it decides what each member sends to each
// receiver.
//
// # Decisions
//
// All faulty processes are one machine, which may sign for all of them. In each round, it receives the messages of
// the correct processes before it sends. Motive: the theorems are about such adversaries, and a host can clone and
// hash a machine. Cost: faulty processes never lie to each other. This does not make the adversary weaker, because
// one machine already knows what all of them know.
//
// By default, the coalition does not keep the messages that it receives. A protocol's Lies can read them in Turn.Seen
// only if the protocol sets Overhears. Motive: most lies do not depend on received messages, and without these
// messages an exploration has fewer states. Cost: if a protocol reads Turn.Seen and does not set Overhears, Turn.Seen
// is empty, and no error reports this.
package faulty

import (
	"cmp"
	"maps"
	"slices"

	"parley"
)

// speakTimer is the coalition's own timer. A machine that uses this number panics.
const speakTimer = parley.SpeakTimer

// Coalition is the machine of all faulty processes.
type Coalition struct {
	protocol  parley.Protocol
	rush      parley.Tick
	overhears bool // received messages are kept
	ids       parley.Set
	members   []member
	indexOf   [parley.MaxProcesses]uint8 // the index of a process among the members

	waiting    bool              // the speak timer is set
	seen       []parley.Received // what members received since the coalition spoke
	seenBefore []parley.Received // what they received in the period before that

	answers    choiceHost        // scratch
	turn       parley.Turn       // scratch
	honest     []parley.Outgoing // scratch
	honestCopy []parley.Outgoing // scratch
}

type member struct {
	id       parley.ID
	behavior Behavior
	machine  parley.Machine
	twin     parley.Machine // the second copy of a twin

	held []parley.Effect // what the copies requested to send since the coalition spoke
}

// New returns the coalition of the given processes. It sends rush ticks later than its honest copies. In a protocol
// with rounds, this must be late in the round, but early enough that the messages arrive in the round. With rush 0
// the coalition sends at once.
func New(p parley.Protocol, rush parley.Tick, how map[parley.ID]Behavior) *Coalition {
	c := &Coalition{protocol: p, rush: rush, overhears: p.Overhears}
	for _, id := range slices.SortedFunc(maps.Keys(how), cmp.Compare[parley.ID]) {
		m := member{id: id, behavior: how[id], machine: p.New(id)}
		if m.behavior.Twin {
			m.twin = p.New(id)
		}
		c.overhears = c.overhears || m.behavior.Overhears
		c.indexOf[id] = uint8(len(c.members))
		c.members = append(c.members, m)
		c.ids.Add(id)
	}
	return c
}

// Seat returns the seat of the coalition for a host.
func (c *Coalition) Seat() parley.Seat {
	return parley.Seat{IDs: slices.Collect(c.ids.All()), Machine: c, Rushing: true}
}

// Start starts the copy of s.Self.
func (c *Coalition) Start(s *parley.Step) {
	c.step(s, func(m parley.Machine) { m.Start(s) })
}

// Request passes the value to the copy of s.Self. A twin's second copy gets
// another value.
func (c *Coalition) Request(s *parley.Step, q parley.Msg) {
	c.step(s, func(m parley.Machine) {
		if m == c.memberOf(s.Self).twin {
			q.Body = otherValue(q.Body)
		}
		m.Request(s, q)
	})
}

// otherValue returns the value that a twin's second copy starts with.
func otherValue(value []byte) []byte {
	if string(value) == "0" {
		return []byte("1")
	}
	return []byte("0")
}

// Receive passes the message to the coalition, and to the copy of s.Self if its
// behavior receives it.
func (c *Coalition) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	if c.overhears && !c.ids.Has(from) {
		c.seen = append(c.seen, parley.Received{From: from, To: s.Self, Path: s.Path, Epoch: s.Epoch, Msg: q})
	}
	m := c.memberOf(s.Self)
	if m.down(s) {
		return
	}
	if m.behavior.Hear != nil && !m.behavior.Hear(s, from, q) {
		s.Refuse(from, parley.Omitted)
		return
	}
	if m.twin == nil {
		mark := s.Mark()
		m.machine.Receive(s, from, q)
		if s.Mark() > mark {
			c.holdSends(s, mark, false)
			c.scheduleTurns(s, m)
		}
		return
	}
	c.step(s, func(one parley.Machine) {
		if (one == m.twin) == inUpperHalf(from, s.N) {
			one.Receive(s, from, q)
		}
	})
}

// Timeout handles a timer of a copy, or the coalition's own timer, at which it sends.
func (c *Coalition) Timeout(s *parley.Step, t parley.Timer) {
	if t == speakTimer {
		c.waiting = false
		c.sendTurns(s)
		return
	}
	m := c.memberOf(s.Self)
	if m.down(s) {
		return
	}
	if m.twin == nil {
		c.step(s, func(m parley.Machine) { m.Timeout(s, t) })
		return
	}
	second := s.Pop(1) == 1
	c.step(s, func(one parley.Machine) {
		if (one == m.twin) == second {
			one.Timeout(s, t)
		}
	})
}

func (c *Coalition) memberOf(id parley.ID) *member {
	m := &c.members[c.indexOf[id]]
	if m.id != id {
		panic("faulty: an event for no member")
	}
	return m
}

func (m *member) down(s *parley.Step) bool { return m.behavior.Down != nil && m.behavior.Down(s.Now) }

// step runs a clause of the copies of s.Self and holds back what they send.
func (c *Coalition) step(s *parley.Step, clause func(parley.Machine)) {
	m, path := c.memberOf(s.Self), s.Path
	if m.down(s) {
		return
	}
	mark := s.Mark()
	clause(m.machine)
	c.holdSends(s, mark, false)
	if m.twin != nil {
		s.Path, mark = path, s.Mark()
		clause(m.twin)
		c.holdSends(s, mark, true)
	}
	c.scheduleTurns(s, m)
}

// scheduleTurns sets the speak timer if there is anything to send.
func (c *Coalition) scheduleTurns(s *parley.Step, m *member) {
	if len(m.held) == 0 || c.waiting {
		return
	}
	if c.rush == 0 {
		c.sendTurns(s)
		return
	}
	c.waiting = true
	s.SetTimer(speakTimer, c.rush)
}

// holdSends takes the sends off the step. Each copy of a twin has its own timers,
// distinguished by a bit of their path, and sends only to its own half of the
// system; all other effects of the second copy are dropped.
func (c *Coalition) holdSends(s *parley.Step, mark int, second bool) {
	m := c.memberOf(s.Self)
	s.Take(mark, func(e *parley.Effect) bool {
		switch e.Op {
		case parley.OpSend:
		case parley.OpSetTimer, parley.OpStopTimer:
			if e.Timer == speakTimer {
				panic("faulty: a machine uses the coalition's timer")
			}
			if m.twin != nil {
				e.Path = e.Path.Push(1, copyBit(second))
			}
			return false
		default:
			return second
		}
		if m.twin == nil {
			m.held = append(m.held, *e)
			return true
		}
		for to := range parley.ID(s.N) {
			if to != s.Self && (e.To == to || e.To == parley.All) && inUpperHalf(to, s.N) == second {
				one := *e
				one.To = to
				m.held = append(m.held, one)
			}
		}
		return true
	})
}

// copyBit returns the bit that distinguishes the copies of a twin.
func copyBit(second bool) parley.Path {
	if second {
		return 1
	}
	return 0
}

// inUpperHalf reports whether a process is in the upper half of all but the first, to which
// a two-faced process lies: of P1 to P7 these are P5, P6 and P7, as the article's
// General divides his lieutenants.
func inUpperHalf(id parley.ID, n int) bool { return int(id) > n/2 }

// sendTurns sends the messages of each member to each process, members in order.
func (c *Coalition) sendTurns(s *parley.Step) {
	sortByLink(c.seen)
	self, path := s.Self, s.Path
	for i := range c.members {
		m := &c.members[i]
		s.Self, s.Path = m.id, 0
		c.turn = parley.Turn{Self: m.id, Members: c.ids, Seen: c.eachSeen}
		c.sendMember(s, m)
		m.held = m.held[:0]
	}
	s.Self, s.Path = self, path
	c.seenBefore, c.seen = c.seen, c.seenBefore[:0]
}

// sendMember sends the messages of one member. If all get the same single message, it is
// one send to all.
func (c *Coalition) sendMember(s *parley.Step, m *member) {
	toAll := !slices.ContainsFunc(m.held, func(e parley.Effect) bool { return e.To != parley.All })
	c.honest = m.honestTo(parley.All, c.honest[:0])
	alike := toAll && len(c.honest) == 1 // so far all get the honest message
	for to := range parley.ID(s.N) {
		if to == m.id {
			continue
		}
		if !toAll {
			c.honest = m.honestTo(to, c.honest[:0])
		}
		said := c.honest
		if !c.ids.Has(to) {
			said = c.lie(s, m, to, said)
		}
		if alike && (len(said) != 1 || !said[0].Equal(c.honest[0])) {
			alike = false
			for before := range to {
				if before != m.id {
					send(s, m.id, before, c.honest)
				}
			}
		}
		if !alike {
			send(s, m.id, to, said)
		}
	}
	if alike {
		send(s, m.id, parley.All, c.honest)
	}
}

func send(s *parley.Step, from, to parley.ID, said []parley.Outgoing) {
	for i := range said {
		s.Effects = append(s.Effects, parley.Effect{
			Op: parley.OpSend, From: from, To: to, Path: said[i].Path, Epoch: said[i].Epoch, Msg: said[i].Msg,
		})
	}
}

// honestTo appends what the copies of a member would send to a process.
func (m *member) honestTo(to parley.ID, list []parley.Outgoing) []parley.Outgoing {
	for i := range m.held {
		if e := &m.held[i]; e.To == to || e.To == parley.All {
			list = append(list, parley.Outgoing{Path: e.Path, Epoch: e.Epoch, Msg: e.Msg})
		}
	}
	return list
}

// lie returns what a member sends to a correct process.
func (c *Coalition) lie(s *parley.Step, m *member, to parley.ID, honest []parley.Outgoing) []parley.Outgoing {
	t := &c.turn
	c.honestCopy = append(c.honestCopy[:0], honest...) // Lies may overwrite the slice that it gets
	t.To, t.Honest = to, c.honestCopy
	switch {
	case m.behavior.Tell != nil:
		return m.behavior.Tell(s, t)
	case m.behavior.Choose != nil && c.protocol.Lies != nil:
		host := s.Host
		c.answers = choiceHost{Host: host, step: s, turn: t, choose: m.behavior.Choose}
		s.Host = &c.answers
		said := c.protocol.Lies(s, t)
		s.Host = host
		return said
	}
	return honest
}

// eachSeen iterates over what the coalition has received in this round and the last.
func (c *Coalition) eachSeen(yield func(parley.Received) bool) {
	for _, g := range c.seenBefore {
		if !yield(g) {
			return
		}
	}
	for _, g := range c.seen {
		if !yield(g) {
			return
		}
	}
}

// choiceHost is the host of a protocol's Lies: it lets a behavior answer the choices.
type choiceHost struct {
	parley.Host
	step   *parley.Step
	turn   *parley.Turn
	choose func(s *parley.Step, t *parley.Turn, k, n int) int
	k      int
}

// Choose answers the k-th choice of this turn. The behavior's own choices go to the
// real host; a host that an adapter has put around this one is restored after them.
func (a *choiceHost) Choose(n int) int {
	a.k++
	asking := a.step.Host
	a.step.Host = a.Host
	i := a.choose(a.step, a.turn, a.k-1, n)
	a.step.Host = asking
	return i
}

// sortByLink sorts received messages by their links: the order in which the links brought
// them is not part of the coalition's state.
func sortByLink(seen []parley.Received) {
	slices.SortStableFunc(seen, func(a, b parley.Received) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
}

// State visits the copies, and all messages that are held back or kept. A renaming may permute members only
// if they have the same behavior.
func (c *Coalition) State(v *parley.Vars) {
	sortByLink(c.seen)
	seats := make([]*member, c.protocol.N)
	for i := range c.members {
		seats[c.members[i].id] = &c.members[i]
	}
	parley.PerProcess(v, "member", seats, func(_ parley.ID, m **member) {
		if *m != nil {
			(*m).state(v)
		}
	})
	v.Bool("waiting", &c.waiting)
	visitReceived(v, "seen", &c.seen)
	visitReceived(v, "before", &c.seenBefore)
}

func (m *member) state(v *parley.Vars) {
	v.Machine("copy", m.machine)
	if m.twin != nil {
		v.Machine("twin", m.twin)
	}
	parley.Slice(v, "held", &m.held, func(_ int, e *parley.Effect) {
		e.Op = parley.OpSend
		v.ID("from", &e.From)
		v.ID("to", &e.To)
		parley.Num(v, "path", &e.Path)
		parley.Num(v, "epoch", &e.Epoch)
		v.Msg("message", parley.Env{From: e.From, To: e.To, Path: e.Path}, &e.Msg)
	})
}

func visitReceived(v *parley.Vars, name string, list *[]parley.Received) {
	parley.Slice(v, name, list, func(_ int, g *parley.Received) {
		v.ID("from", &g.From)
		v.ID("to", &g.To)
		parley.Num(v, "path", &g.Path)
		parley.Num(v, "epoch", &g.Epoch)
		v.Msg("message", parley.Env{From: g.From, To: g.To, Path: g.Path}, &g.Msg)
	})
}
