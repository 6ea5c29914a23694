// Package faulty makes processes fail: by crashes, by omissions, by lies.
//
// All faulty processes of a run are one [Coalition], which is one machine in a
// seat of several processes: it is cloned and hashed like any other. It runs an
// honest copy of the protocol for each member, holds back what the copies would
// send, waits until it has received what the correct processes send in the round
// (it rushes), and then decides, receiver by receiver, what each member sends.
//
// # Decisions
//
// All faulty processes are one machine, and it rushes. It receives the correct processes' messages of a
// round before it sends, and may sign for all its members. Motive: the theorems are about such adversaries,
// and a machine can be cloned and hashed. Cost: members send each other the honest message, which a member
// might not send; that gives the adversary nothing that it does not have.
//
// What a coalition has received is kept only if Overhears says that lies read it. Motive: states of an
// exploration merge, and oral lies cost nothing. Cost: a Lies that reads Seen without Overhears finds
// nothing.
package faulty

import (
	"cmp"
	"maps"
	"slices"

	"parley"
)

// speak is the coalition's own timer. A machine that uses this number panics.
const speak parley.Timer = 0xFFFF

// Coalition is the machine of all faulty processes.
type Coalition struct {
	protocol  parley.Protocol
	rush      parley.Tick
	overhears bool // received messages are kept
	ids       parley.Set
	members   []member
	place     [parley.MaxProcesses]uint8 // the index of a process among the members

	waiting bool              // the speak timer is set
	seen    []parley.Received // what members received since the coalition spoke
	before  []parley.Received // what they received in the period before that

	answers answers           // scratch
	turn    parley.Turn       // scratch
	honest  []parley.Outgoing // scratch
	asked   []parley.Outgoing // scratch
}

// member is one faulty process.
type member struct {
	id      parley.ID
	how     Behavior
	machine parley.Machine
	twin    parley.Machine // the second copy of a twin

	held []parley.Effect // what the copies requested to send since the coalition spoke
}

// New returns the coalition of the given processes. It sends rush ticks after
// its honest copies would: in lockstep, late in the round but in time.
// With rush 0 it sends at once.
func New(p parley.Protocol, rush parley.Tick, how map[parley.ID]Behavior) *Coalition {
	c := &Coalition{protocol: p, rush: rush, overhears: p.Overhears}
	for _, id := range slices.SortedFunc(maps.Keys(how), cmp.Compare[parley.ID]) {
		m := member{id: id, how: how[id], machine: p.New(id)}
		if m.how.Twin {
			m.twin = p.New(id)
		}
		c.overhears = c.overhears || m.how.Overhears
		c.place[id] = uint8(len(c.members))
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
		if m == c.of(s.Self).twin {
			q.Body = other(q.Body)
		}
		m.Request(s, q)
	})
}

// other returns the value that a twin's second copy starts with.
func other(value []byte) []byte {
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
	m := c.of(s.Self)
	if m.down(s) {
		return
	}
	if m.how.Hear != nil && !m.how.Hear(s, from, q) {
		return
	}
	if m.twin == nil {
		mark := s.Mark()
		m.machine.Receive(s, from, q)
		if s.Mark() > mark {
			c.hold(s, mark, false)
			c.wait(s, m)
		}
		return
	}
	c.step(s, func(one parley.Machine) {
		if (one == m.twin) == upper(from, s.N) {
			one.Receive(s, from, q)
		}
	})
}

// Timeout handles a timer of a copy, or the coalition's own: time to send.
func (c *Coalition) Timeout(s *parley.Step, t parley.Timer) {
	if t == speak {
		c.waiting = false
		c.speak(s)
		return
	}
	m := c.of(s.Self)
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

func (c *Coalition) of(id parley.ID) *member {
	m := &c.members[c.place[id]]
	if m.id != id {
		panic("faulty: an event for no member")
	}
	return m
}

// down reports whether the member has crashed.
func (m *member) down(s *parley.Step) bool { return m.how.Down != nil && m.how.Down(s.Now) }

// step runs a clause of the copies of s.Self and holds back what they send.
func (c *Coalition) step(s *parley.Step, clause func(parley.Machine)) {
	m, path := c.of(s.Self), s.Path
	if m.down(s) {
		return
	}
	mark := s.Mark()
	clause(m.machine)
	c.hold(s, mark, false)
	if m.twin != nil {
		s.Path, mark = path, s.Mark()
		clause(m.twin)
		c.hold(s, mark, true)
	}
	c.wait(s, m)
}

// wait sets the speak timer if there is anything to send.
func (c *Coalition) wait(s *parley.Step, m *member) {
	if len(m.held) == 0 || c.waiting {
		return
	}
	if c.rush == 0 {
		c.speak(s)
		return
	}
	c.waiting = true
	s.SetTimer(speak, c.rush)
}

// hold takes the sends off the step. Each copy of a twin has its own timers,
// distinguished by a bit of their path, and sends only to its own half of the
// system; all other effects of the second copy are dropped.
func (c *Coalition) hold(s *parley.Step, mark int, second bool) {
	m := c.of(s.Self)
	s.Take(mark, func(e *parley.Effect) bool {
		switch e.Op {
		case parley.OpSend:
		case parley.OpSetTimer, parley.OpStopTimer:
			if e.Timer == speak {
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
			if to != s.Self && (e.To == to || e.To == parley.All) && upper(to, s.N) == second {
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

// upper reports whether a process is in the upper half of all but the first, to which
// a two-faced process lies: of P1 to P7 these are P5, P6 and P7, as the article's
// General divides his lieutenants.
func upper(id parley.ID, n int) bool { return int(id) > n/2 }

// speak sends the messages of each member to each process, members in order.
func (c *Coalition) speak(s *parley.Step) {
	inOrder(c.seen)
	self, path := s.Self, s.Path
	for i := range c.members {
		m := &c.members[i]
		s.Self, s.Path = m.id, 0
		c.turn = parley.Turn{Self: m.id, Members: c.ids, Seen: c.all}
		c.say(s, m)
		m.held = m.held[:0]
	}
	s.Self, s.Path = self, path
	c.before, c.seen = c.seen, c.before[:0]
}

// say sends the messages of one member. If all get the same single message, it is
// one send to all.
func (c *Coalition) say(s *parley.Step, m *member) {
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
			said = c.tell(s, m, to, said)
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

// send sends messages in the name of a member.
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

// tell returns what a member sends to a correct process.
func (c *Coalition) tell(s *parley.Step, m *member, to parley.ID, honest []parley.Outgoing) []parley.Outgoing {
	t := &c.turn
	c.asked = append(c.asked[:0], honest...) // Lies may overwrite the slice that it gets
	t.To, t.Honest = to, c.asked
	switch {
	case m.how.Tell != nil:
		return m.how.Tell(s, t)
	case m.how.Choose != nil && c.protocol.Lies != nil:
		host := s.Host
		c.answers = answers{Host: host, step: s, turn: t, choose: m.how.Choose}
		s.Host = &c.answers
		said := c.protocol.Lies(s, t)
		s.Host = host
		return said
	}
	return honest
}

// all iterates over what the coalition has received in this round and the last.
func (c *Coalition) all(yield func(parley.Received) bool) {
	for _, g := range c.before {
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

// answers is the host of a protocol's Lies: it lets a behavior answer the choices.
type answers struct {
	parley.Host
	step   *parley.Step
	turn   *parley.Turn
	choose func(s *parley.Step, t *parley.Turn, k, n int) int
	k      int
}

// Choose answers the k-th choice of this turn. The behavior's own choices go to the
// real host; a host that an adapter has put around this one is restored after them.
func (a *answers) Choose(n int) int {
	a.k++
	asking := a.step.Host
	a.step.Host = a.Host
	i := a.choose(a.step, a.turn, a.k-1, n)
	a.step.Host = asking
	return i
}

// inOrder sorts received messages by their links: the order in which the links brought
// them is not part of the coalition's state.
func inOrder(seen []parley.Received) {
	slices.SortStableFunc(seen, func(a, b parley.Received) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To))
	})
}

// State visits the copies and everything held back or kept. A rename permutes the
// members, which makes sense if members that it permutes have the same behavior.
func (c *Coalition) State(v *parley.Vars) {
	inOrder(c.seen)
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
	visitGot(v, "seen", &c.seen)
	visitGot(v, "before", &c.before)
}

// state visits the copies of one member.
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

func visitGot(v *parley.Vars, name string, list *[]parley.Received) {
	parley.Slice(v, name, list, func(_ int, g *parley.Received) {
		v.ID("from", &g.From)
		v.ID("to", &g.To)
		parley.Num(v, "path", &g.Path)
		parley.Num(v, "epoch", &g.Epoch)
		v.Msg("message", parley.Env{From: g.From, To: g.To, Path: g.Path}, &g.Msg)
	})
}
