package service

import (
	"parley"
	"parley/agreement/ballot"
	"parley/commit/problem"
	"parley/commit/twophase"
)

// Clauses for messages of other processes and for timers.

// Receive handles a message from a link.
func (m *Machine) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	path := s.Path
	switch {
	case q.Kind >= parley.Local:
		return
	case int(CoordinatorOf(path)) >= m.c.N:
		s.Refuse(from, "transaction of nobody")
	case q.Kind == msgDone:
		m.completions.done(s, from, q)
	case q.Kind == msgOpen:
		m.completions.opened(s, from, q)
	case q.Kind == msgBegin:
		m.begun(s, from, path, q)
	default:
		m.hear(s, from, path, q)
	}
	m.log.compact(s, len(m.live))
}

// begun handles a spec. The coordinator sends it to ask for a vote. Another member sends it to ask for the
// outcome: if this process does not know the transaction, it has not voted yes, and votes no.
func (m *Machine) begun(s *parley.Step, from parley.ID, path parley.Path, q parley.Msg) {
	of, ok := ReadSpec(q.Body, m.c.N)
	id, asks := CoordinatorOf(path), q.Seq == 1
	switch {
	case !ok || q.Seq > 1 || q.Origin != 0 || of.Members[0] != id || !of.Has(m.self) || !of.Has(from) ||
		asks && from != id || !asks && len(of.Parts) > 0 || len(of.Parts) > 1 ||
		len(of.Parts) == 1 && of.Parts[0].ID != m.self || q.Value > NumberOf(path):
		s.Refuse(from, "what is no transaction")
		return
	case id == m.self || m.live[path] != nil || m.history.at[path] != nil:
		return // known or finished
	}
	c := &m.of[id]
	switch {
	case c.over(NumberOf(path)), !asks && m.blank > 0: // it may have voted yes and lost that
		return
	case len(c.list) >= 4*m.c.Open:
		s.Refuse(from, "too many transactions")
		return
	}
	why := AbortReason{By: m.self}
	switch taken := m.claim(of); {
	case !asks:
		why.Text = "has not been asked"
	case taken != Free:
		why.Text, why.Claim, of.Parts = "a transaction has had this name already", taken, nil
	case c.bytes+of.Size() > MaxParts:
		why.Text, of.Parts = "too much is under way", nil
	}
	t := &transaction{path: path, spec: of, inner: m.c.machine(of, m.self)}
	m.add(t)
	m.within(s, t, func(inner parley.Machine) { inner.Start(s) })
	// In two phases the answer to a member is no, and a no leaves no record. The coordinator may still ask
	// after a crash.
	if !asks && !m.c.Majority {
		m.log.keep(s, t)
	}
	if why.Text != "" {
		m.voted(s, t, false, why)
	} else {
		m.ask(s, t)
	}
	if asks && q.Value > c.low {
		c.low = q.Value
		m.drop(id, func(t *transaction) bool { return t.told && NumberOf(t.path) < c.low })
	}
}

// hear handles a message for an inner machine, or the reason of a vote.
func (m *Machine) hear(s *parley.Step, from parley.ID, path parley.Path, q parley.Msg) {
	t := m.live[path]
	if t == nil {
		m.unknown(s, from, path, q)
		return
	}
	place := t.spec.place(from)
	switch {
	case int(place) >= len(t.spec.Members):
		s.Refuse(from, "word of one that takes no part")
	case q.Kind == msgWhy:
		if CoordinatorOf(path) != m.self || t.why.Text != "" || len(q.Body) > MaxReason || q.Value > 1 ||
			q.Seq > uint64(TakenByAbort) {
			s.Refuse(from, "reason that nobody asked for")
			return
		}
		t.why = AbortReason{By: from, Text: string(q.Body)}
		if q.Value == 1 {
			t.why.Claim = max(NameClaim(q.Seq), TakenPerhaps)
		}
	case q.Kind >= msgBegin:
		s.Refuse(from, "no message of a transaction")
	// The inner machine would forget a commit that all have logged. Here all must have carried it out.
	case !m.c.Majority && q.Kind == twophase.Ack:
	default:
		t.heard.Add(from)
		m.within(s, t, func(inner parley.Machine) { inner.Receive(s, place, q) })
		if !m.c.Majority && q.Kind == twophase.VoteRequest && from == CoordinatorOf(path) {
			t.asked = true
			m.give(s, t, false)
		}
	}
}

// unknown handles a message about a transaction that is over here or never existed. If the process remembers
// the outcome, it answers with that; otherwise the coordinator presumes abort.
func (m *Machine) unknown(s *parley.Step, from parley.ID, path parley.Path, q parley.Msg) {
	outcome := problem.Undecided
	if e := m.history.at[path]; e != nil {
		outcome = e.Outcome
	}
	own := CoordinatorOf(path) == m.self
	switch number := NumberOf(path); {
	case own && number >= m.next:
		s.Refuse(from, "word of a transaction that is not there")
		return
	case own && outcome == problem.Undecided && number >= m.blank:
		outcome = problem.Abort
	}
	switch {
	case outcome != problem.Undecided:
	// The spec was lost, or it came before a crash.
	case !m.c.Majority && q.Kind == twophase.VoteRequest && from == CoordinatorOf(path):
		send(s, from, path, parley.Msg{Kind: twophase.Vote})
		return
	default:
		s.Refuse(from, "word of a transaction that is over, or not known")
		return
	}
	switch majority := m.c.Majority; {
	case majority && (q.Kind == ballot.Prepare || q.Kind == ballot.Accept):
		send(s, from, path, parley.Msg{Kind: ballot.Decision, Body: []byte(outcome.String())})
	case !majority && own && (q.Kind == twophase.Ask || q.Kind == twophase.Vote && q.Value == 1):
		send(s, from, path, parley.Msg{Kind: twophase.Decision, Value: outcome.Bit()})
	case !majority && !own && q.Kind == twophase.Ask:
		send(s, from, path, parley.Msg{Kind: twophase.Answer, Value: uint64(outcome.Reached())})
	}
}

// Timeout handles a timer of the machine or of an inner machine.
func (m *Machine) Timeout(s *parley.Step, timer parley.Timer) {
	if s.Path == 0 && timer == openTimer {
		m.completions.timeout(s)
		return
	}
	if t := m.live[s.Path]; t != nil && timer == voteTimer {
		if !t.ready {
			m.voted(s, t, false, AbortReason{By: m.self, Text: "was not ready in time"})
		}
		m.give(s, t, true)
	} else if t != nil {
		m.within(s, t, func(inner parley.Machine) { inner.Timeout(s, timer) })
	}
	m.log.compact(s, len(m.live))
}

func send(s *parley.Step, to parley.ID, path parley.Path, q parley.Msg) {
	s.At(path, 0, func() { s.Send(to, q) })
}
