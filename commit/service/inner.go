package service

import (
	"fmt"
	"slices"

	"parley"
	"parley/agreement/ballot"
	"parley/commit/problem"
	"parley/commit/quorum"
	"parley/commit/twophase"
)

// machine makes the inner machine of a transaction.
func (m *Machine) machine(of Spec) parley.Machine {
	k := len(of.Members)
	local := of.place(m.self)
	votes := m.c.Votes + 2*m.c.Delta // longer than a process waits for its participant
	switch {
	case k == 1:
		return new(single)
	case m.c.Majority:
		return quorum.New(quorum.Config{N: k, M: (k - 1) / 2, Delta: m.c.Delta, Votes: votes}).New(local)
	}
	return twophase.New(twophase.Config{N: k, Delta: m.c.Delta, Votes: votes}).New(local)
}

// within runs a clause of an inner machine, which counts processes as the members of its
// transaction.
func (m *Machine) within(s *parley.Step, t *transaction, clause func(parley.Machine)) {
	self, n, path, host := s.Self, s.N, s.Path, s.Host
	m.members = memberHost{Host: host, members: t.spec.Members}
	s.Self, s.N, s.Path, s.Host = t.spec.place(m.self), len(t.spec.Members), 0, &m.members
	mark := s.Mark()
	clause(t.inner)
	s.Self, s.N, s.Path, s.Host = self, n, path, host
	asked := append(m.scratch[:0], s.Effects[mark:]...)
	s.Effects = s.Effects[:mark]
	for i := range asked {
		m.carry(s, t, &asked[i])
	}
	t.begun = t.begun || slices.ContainsFunc(asked, func(e parley.Effect) bool {
		return e.Op == parley.OpSend && m.asks(e.Msg.Kind)
	})
	clear(asked)
	m.scratch = asked[:0]
}

// carry carries out an effect of an inner machine.
func (m *Machine) carry(s *parley.Step, t *transaction, e *parley.Effect) {
	switch e.Op {
	case parley.OpSend:
		// Say what a transaction is before asking for its outcome.
		if m.asks(e.Msg.Kind) {
			if t.begun || CoordinatorOf(t.path) != m.self {
				m.sendTo(s, t, e.To, parley.Msg{Kind: msgBegin, Body: t.spec.Only(parley.All).Encode()})
			}
			t.heard = parley.Set{}
		}
		m.sendTo(s, t, e.To, e.Msg)
	case parley.OpDeliver:
		outcome := problem.Abort
		if string(e.Msg.Body) == problem.Commit.String() {
			outcome = problem.Commit
		}
		m.decided(s, t, outcome)
	case parley.OpIndicate:
		if e.Msg.Kind == problem.Blocked {
			t.blocked = true
			m.tellBlocked(s, t)
		}
	case parley.OpAppend:
		m.keep(s, t)
		m.record(s, t.path, e.Msg.Body)
	case parley.OpCompact: // see compact
	case parley.OpSetTimer, parley.OpStopTimer:
		e.From, e.Path = m.self, t.path
		s.Effects = append(s.Effects, *e)
	default:
		panic(fmt.Sprintf("service: a transaction asks for effect %d", e.Op))
	}
}

// keep makes durable what a transaction is, and with it that this process does not vote yes any more
// if it comes back after a crash.
func (m *Machine) keep(s *parley.Step, t *transaction) {
	if t.logged {
		return
	}
	t.logged = true
	head := []byte{specRecord, 0}
	if t.yes {
		head[1] = 1
	}
	m.record(s, t.path, append(head, t.spec.Encode()...))
}

// asks tells whether an inner machine asks others for the outcome by a message of a kind.
func (m *Machine) asks(k parley.Kind) bool {
	if m.c.Majority {
		return k == ballot.Prepare
	}
	return k == twophase.Ask
}

// sendTo sends to one member, or to all others. to counts members.
func (m *Machine) sendTo(s *parley.Step, t *transaction, to parley.ID, q parley.Msg) {
	if to != parley.All {
		m.send(s, t.spec.Members[to], t.path, q)
		return
	}
	for _, id := range t.spec.Members {
		if id != m.self {
			m.send(s, id, t.path, q)
		}
	}
}

// memberHost is the host of an inner machine, which counts processes as members.
type memberHost struct {
	parley.Host
	members []parley.ID
}

// Refused counts input that an inner machine refused.
func (h *memberHost) Refused(at, from parley.ID, why string) {
	h.Host.Refused(h.members[at], h.members[from], why)
}

// single decides a transaction of one process: its vote is the outcome.
type single struct {
	parley.Base
	committed bool
}

// Request is the vote, and decides.
func (a *single) Request(s *parley.Step, m parley.Msg) {
	yes, _ := problem.Vote(m.Body)
	if a.committed = yes; yes {
		s.Append([]byte("committed"))
	}
	a.decide(s)
}

// Start after a crash decides: without a record the outcome is abort.
func (a *single) Start(s *parley.Step) {
	if s.Restart {
		a.committed = a.committed || len(s.Log) > 0
		a.decide(s)
	}
}

func (a *single) decide(s *parley.Step) {
	outcome := problem.Abort
	if a.committed {
		outcome = problem.Commit
	}
	s.Deliver(s.Self, outcome.Decided(s.Self))
}

// State visits the one variable.
func (a *single) State(v *parley.Vars) { v.Durable(func() { v.Bool("committed", &a.committed) }) }
