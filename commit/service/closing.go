package service

import (
	"parley"
	"parley/agreement/ballot"
	broadcast "parley/broadcast/problem"
	"parley/commit/problem"
)

// decided takes an outcome of an inner machine, which is durable before it leaves the process.
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
	if !m.holds(t) { // a request under the name is about another transaction
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

func (t *transaction) finished() *Finished {
	return &Finished{t.path, t.spec.Name, t.spec.Digest, t.outcome, t.why}
}

func (m *Machine) tellBlocked(s *parley.Step, t *transaction) {
	s.Indicate(parley.Msg{Kind: Blocked, Value: uint64(t.path),
		Body: append(broadcast.AppendSet(nil, m.waits(t)), t.spec.Name...)})
}

// ReadBlocked reads the Body of a Blocked in a system of n processes: the members that may know the
// outcome, or without which no process knows it, and the name of the transaction.
func ReadBlocked(b []byte, n int) (waits parley.Set, name string) {
	waits, rest, err := broadcast.ReadSet(b, n)
	if err != nil {
		panic("service: a set cannot be read that this process wrote")
	}
	return waits, string(rest)
}

// waits returns the members that have not answered since this process asked for the outcome.
func (m *Machine) waits(t *transaction) parley.Set {
	return parley.SetOf(t.spec.Members...).Minus(parley.SetOf(m.self)).Minus(t.heard)
}

// applied notes that the participant has carried out the outcome, or had nothing to carry out.
func (m *Machine) applied(s *parley.Step, t *transaction) {
	if t.outcome == problem.Undecided {
		return
	}
	if !t.told {
		t.told = true
		if t.logged {
			m.record(s, t.path, []byte{appliedRecord})
		}
	}
	if id := CoordinatorOf(t.path); id != m.self {
		m.send(s, id, 0, parley.Msg{Kind: msgDone, Body: encodeNumbers([]uint64{NumberOf(t.path)})})
		m.beat(s)
		if m.of[id].over(NumberOf(t.path)) {
			m.drop(id, func(x *transaction) bool { return x == t })
		}
		return
	}
	m.close(t)
	m.beat(s)
}

// done takes the numbers of transactions of this process that another one has carried out.
func (m *Machine) done(s *parley.Step, from parley.ID, q parley.Msg) {
	list, ok := readNumbers(q.Body, 4*m.c.Open)
	if !ok || len(list) == 0 {
		s.Refuse(from, "numbers that cannot be read")
		return
	}
	for _, number := range list {
		t := m.live[PathOf(m.self, number)]
		switch {
		case t == nil:
			m.news = true // the sender has not forgotten it
		case t.spec.Has(from):
			t.acked.Add(from)
			m.close(t)
		}
	}
	m.beat(s)
}

// close forgets a transaction of this process if it is over: it is aborted, or all members have
// carried it out.
func (m *Machine) close(t *transaction) {
	if t.told && (t.outcome == problem.Abort || missing(t) == (parley.Set{})) {
		m.news = true
		m.drop(m.self, func(x *transaction) bool { return x == t })
	}
}

// missing returns the other members that have not said that they have carried it out.
func missing(t *transaction) parley.Set { return parley.SetOf(t.spec.Members[1:]...).Minus(t.acked) }

// sendOpen tells each other process which of its transactions with this one are not over.
func (m *Machine) sendOpen(s *parley.Step) {
	m.news = false
	of := make([][]uint64, m.c.N)
	for _, t := range m.of[m.self].list {
		for _, id := range t.spec.Members[1:] {
			of[id] = append(of[id], NumberOf(t.path))
		}
	}
	for id := range parley.ID(m.c.N) {
		if id != m.self {
			m.send(s, id, 0, parley.Msg{Kind: msgOpen, Seq: m.next, Body: encodeNumbers(of[id])})
		}
	}
}

// beat sets the timer to repeat what others may have missed.
func (m *Machine) beat(s *parley.Step) {
	if !m.pulse {
		m.pulse = true
		s.SetTimer(openTimer, 4*m.c.Delta)
	}
}

// remind tells others what is over, and coordinators what is carried out here and not over. It
// returns whether it must be called again.
func (m *Machine) remind(s *parley.Step) (more bool) {
	for _, t := range m.of[m.self].list {
		if t.outcome != problem.Commit {
			continue
		}
		more = true
		if m.c.Majority { // in two phases the inner machine does so
			for id := range missing(t).All() {
				m.send(s, id, t.path, parley.Msg{Kind: ballot.Decision, Body: []byte(t.outcome.String())})
			}
		}
	}
	if m.news || more {
		m.sendOpen(s)
	}
	for id := range m.of {
		var list []uint64
		for _, t := range m.of[id].list {
			if parley.ID(id) != m.self && t.told {
				if t.reminded {
					list = append(list, NumberOf(t.path))
				}
				t.reminded, more = true, true
			}
		}
		if len(list) > 0 {
			m.send(s, parley.ID(id), 0, parley.Msg{Kind: msgDone, Body: encodeNumbers(list)})
		}
	}
	return more
}

// opened takes what is over from a coordinator, and tells it again which of the others are
// carried out here, or forgotten.
func (m *Machine) opened(s *parley.Step, from parley.ID, q parley.Msg) {
	list, ok := readNumbers(q.Body, 4*m.c.Open)
	if !ok || q.Seq >= 1<<56 || len(list) > 0 && list[len(list)-1] >= q.Seq {
		s.Refuse(from, "numbers that cannot be read")
		return
	}
	c := &m.of[from]
	if q.Seq < c.below {
		return
	}
	c.below, c.open = q.Seq, list
	m.drop(from, func(t *transaction) bool { return t.told && c.over(NumberOf(t.path)) })
	var again []uint64
	for _, number := range list {
		if t := m.live[PathOf(from, number)]; t == nil || t.told {
			again = append(again, number)
		}
	}
	if len(again) > 0 {
		m.send(s, from, 0, parley.Msg{Kind: msgDone, Body: encodeNumbers(again)})
	}
}

// compact lets the state replace the records when there are many.
func (m *Machine) compact(s *parley.Step) {
	if m.records >= m.c.Compact && m.records >= 2*len(m.live) {
		m.records = 0
		s.Compact()
	}
}
