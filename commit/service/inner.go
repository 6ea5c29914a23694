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

// machine returns the inner machine of a transaction.
func (c Config) machine(of Spec, self parley.ID) parley.Machine {
	k := len(of.Members)
	local := of.place(self)
	votes := c.Votes + 2*c.Delta // longer than a process waits for its participant
	switch {
	case k == 1:
		return new(single)
	case c.Majority:
		return quorum.New(quorum.Config{N: k, M: (k - 1) / 2, Delta: c.Delta, Votes: votes}).New(local)
	}
	return twophase.New(twophase.Config{N: k, Delta: c.Delta, Votes: votes}).New(local)
}

// asks reports whether an inner machine asks other processes for the outcome with messages of kind k.
func (c Config) asks(k parley.Kind) bool {
	if c.Majority {
		return k == ballot.Prepare
	}
	return k == twophase.Ask
}

// within runs a clause of an inner machine, which numbers processes by their place in the transaction.
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
		return e.Op == parley.OpSend && m.c.asks(e.Msg.Kind)
	})
	clear(asked)
	m.scratch = asked[:0]
}

// carry carries out an effect of an inner machine.
func (m *Machine) carry(s *parley.Step, t *transaction, e *parley.Effect) {
	switch e.Op {
	case parley.OpSend:
		// Send what the transaction is before asking for its outcome.
		if m.c.asks(e.Msg.Kind) {
			if t.begun || CoordinatorOf(t.path) != m.self {
				t.sendTo(s, e.To, parley.Msg{Kind: msgBegin, Body: t.spec.Only(parley.All).Encode()})
			}
			t.heard = parley.Set{}
		}
		t.sendTo(s, e.To, e.Msg)
	case parley.OpDeliver:
		m.decided(s, t, problem.ReadOutcome(e.Msg.Body))
	case parley.OpIndicate:
		if e.Msg.Kind == problem.Blocked {
			t.blocked = true
			m.tellBlocked(s, t)
		}
	case parley.OpAppend:
		m.log.keep(s, t)
		m.log.record(s, t.path, e.Msg.Body)
	case parley.OpCompact: // txJournal compacts the log
	case parley.OpSetTimer, parley.OpStopTimer:
		e.From, e.Path = m.self, t.path
		s.Effects = append(s.Effects, *e)
	default:
		panic(fmt.Sprintf("service: a transaction asks for effect %d", e.Op))
	}
}

// decided handles the outcome of an inner machine. The outcome is durable before it leaves the process.
func (m *Machine) decided(s *parley.Step, t *transaction, outcome problem.Outcome) {
	if t.outcome != problem.Undecided {
		return
	}
	if outcome == problem.Commit {
		t.why = AbortReason{}
	}
	t.outcome, t.blocked = outcome, false
	e, whom := t.finished(), Nobody
	if _, has := t.spec.Part(m.self); has && !t.told {
		whom = Participant
	}
	q := e.Ended(whom)
	if !m.holds(t) { // the name belongs to another transaction
		e.Why.Claim = max(e.Why.Claim, TakenPerhaps)
		if whom == Nobody {
			q.Body = e.Why.encode("")
		}
	}
	m.history.Add(e)
	s.Deliver(t.spec.Members[0], q)
	s.At(t.path, 0, func() { s.StopTimer(voteTimer) })
	if whom == Nobody {
		m.applied(s, t)
	}
}

func (m *Machine) tellBlocked(s *parley.Step, t *transaction) {
	s.Indicate(parley.Msg{Kind: Blocked, Value: uint64(t.path),
		Body: append(parley.AppendSet(nil, t.waits(m.self)), t.spec.Name...)})
}

// ReadBlocked reads the Body of a Blocked in a system of n processes: the members that this process waits for, and
// the name of the transaction. One of these members may know the outcome, or the outcome cannot be decided without
// them.
func ReadBlocked(b []byte, n int) (waits parley.Set, name string) {
	waits, rest, err := parley.ReadSet(b, n)
	if err != nil {
		panic("service: a set cannot be read that this process wrote")
	}
	return waits, string(rest)
}

// applied records that the participant has carried out the outcome, or had nothing to carry out.
func (m *Machine) applied(s *parley.Step, t *transaction) {
	if t.outcome == problem.Undecided {
		return
	}
	if !t.told {
		t.told = true
		if t.logged {
			m.log.record(s, t.path, []byte{appliedRecord})
		}
	}
	m.completions.carried(s, t)
}

// memberHost is the host of an inner machine, which numbers processes by their place in the transaction.
type memberHost struct {
	parley.Host
	members []parley.ID
}

func (h *memberHost) Refused(at, from parley.ID, why string) {
	h.Host.Refused(h.members[at], h.members[from], why)
}
