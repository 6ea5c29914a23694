// Package ordered decides transactions by votes that are broadcast in a total order. The order tolerates liars. Any
// number of transactions can run at the same time.
//
// Each transaction solves atomic commitment (package problem) among the correct participants: all of them commit the
// transaction, or all abort it. The broadcast in the layer below, such as package broadcast/byzantine, determines the
// model and the bound: up to m of the n processes may lie, and n > 3m.
//
// The coordinator broadcasts the transaction, and each participant broadcasts its vote. All correct processes deliver
// the same votes in the same order, and compute the outcome from them. A transaction commits when all participants
// have voted yes. It aborts at the first no. It also aborts when more than m processes have broadcast that they have
// waited too long. Requests and deliveries are the same as in package commit/service.
//
// A process makes its vote yes durable before it broadcasts the vote. A restarted process reads its yes votes from its
// log, and asks all others for the outcomes. It accepts an outcome that more than m of them report. If a process does
// not learn an outcome from the broadcast in time, it asks in the same way.
//
// After a restart the broadcast delivers again what it has kept, and the process saves its state from time to time. So
// it finds all outcomes again, and takes part again. Meanwhile it does not prepare transactions again, and reports to
// its participant only outcomes that the participant may not know. If the process has missed deliveries for good, it
// might find wrong outcomes. So from then on it ignores the order, and only asks.
//
// Why it works: all correct processes compute the outcome only from deliveries, which they have in the same order. So
// all of them find the same outcome. Among m+1 processes that report an outcome, or that have waited too long, at
// least one is correct. A yes counts only for the process that broadcast it, because no liar can broadcast in the
// name of another process. A liar can do only one kind of harm: it can abort a transaction in which it takes part.
//
// Source: a state machine on an order that tolerates liars is from Lamport, Using Time Instead of Timeout (1984).
// Votes in such an order are from the lecture (docs/explanation/sources.md), remarks on atomic commitment.
package ordered

import (
	"cmp"
	"encoding/binary"
	"iter"
	"slices"

	"parley"
	"parley/commit/problem"
	"parley/commit/service"
)

// Config holds what all processes know beforehand. It must be identical at all of them.
type Config struct {
	// N is the number of processes, and M is how many of them may lie.
	N, M int
	// Delta is the longest time that a message takes, in ticks. 0 means 1000.
	Delta parley.Tick
	// Votes is how long a vote may take. 0 means 2 Delta.
	Votes parley.Tick
	// Open is how many transactions of one process may be in flight. 0 means 4096.
	Open int
	// Remember is how many finished transactions a process remembers. 0 means 16384.
	Remember int
	// Compact is the number of log records after which a checkpoint replaces them. 0 means 4096.
	Compact int
}

func (c Config) withDefaults() Config {
	c.Delta = cmp.Or(c.Delta, 1000)
	c.Votes = cmp.Or(c.Votes, 2*c.Delta)
	c.Open, c.Remember, c.Compact = cmp.Or(c.Open, 4096), cmp.Or(c.Remember, 16384), cmp.Or(c.Compact, 4096)
	return c
}

// New returns the protocol, a layer above an order. Each delivery of the order has its position in Seq. After a restart
// the order delivers again what it has kept, and indicates From and Live.
func New(c Config) parley.Protocol {
	c = c.withDefaults()
	return parley.Protocol{
		Name: "ordered", Title: "atomic commitment among processes that lie, by votes in a total order", N: c.N, M: c.M,
		Paper: "Lamport 1984; lecture, atomic commitment", Faults: parley.OralByzantineFaults,
		Serves: true, Hears: parley.HearsBoth,
		Kinds:   []string{"", "ASK", "SAYS"}, // on links
		New:     func(self parley.ID) parley.Machine { return newMachine(c, self) },
		Lies:    lies(c),
		Explain: explain(c),
		Size:    func(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{Messages: 1} },
	}
}

// The kinds of messages: first those on links, then those that are broadcast.
const (
	msgAsk  parley.Kind = 1 + iota // asks for an outcome. Body: a Spec without parts
	msgSays                        // Seq: a problem.Outcome. Body: the Spec
	// Begin announces a transaction. Body: a Spec with all parts.
	Begin
	// Vote is the vote of its sender. Body: 1 for yes, 0 for no; the digest; the name with its length before
	// it; and the reason of a no.
	Vote
	// Expire says that its sender has waited too long for votes. Body: as in a Vote for no.
	Expire
	// Void is any other delivery. It only has a position, and bytes that the order keeps.
	Void
)

// The indications of the order. Between From and Live, the order delivers what it may have delivered before a restart.
const (
	// From indicates that the next delivery is the first one after position Seq.
	From parley.Kind = parley.Indication + 0x2C + iota
	// Live indicates that the following deliveries are new.
	Live
)

// The timers: one for each transaction with missing votes, and one to ask for outcomes.
const (
	expireTimer parley.Timer = 1 + iota
	askTimer
)

// Machine is the machine of one process.
type Machine struct {
	c    Config
	self parley.ID

	number   uint64 // of the last transaction that the order began: the same at all processes that deliver everything
	stray    uint64 // of the last outcome that came before its transaction
	open     map[uint64]*transaction
	names    map[string]*transaction // of the open transactions
	loads    []load                  // by coordinator
	past     service.History         // outcomes found in the order
	heard    service.History         // outcomes reported by others, without the order
	outcomes outcomeTracker
	progress
}

// load is what one coordinator has open.
type load struct{ count, bytes int }

// transaction is a transaction without an outcome.
type transaction struct {
	number  uint64
	spec    service.Spec
	yes     parley.Set
	expired parley.Set // processes that have waited too long
	voted   bool       // this process has voted
	learned bool       // others have reported the outcome to this process
}

// path identifies the transaction to the participant and to the host.
func (t *transaction) path() parley.Path { return service.PathOf(t.spec.Members[0], t.number) }

func newMachine(c Config, self parley.ID) *Machine {
	return &Machine{
		c: c, self: self, open: make(map[uint64]*transaction), names: make(map[string]*transaction),
		loads: make([]load, c.N), past: service.NewHistory(c.Remember), heard: service.NewHistory(c.Remember),
	}
}

// Start prepares again the transactions for which the process had voted yes, and asks for their outcomes.
func (m *Machine) Start(s *parley.Step) {
	if !s.Restart {
		return
	}
	m.outcomes.read(s, m.c.N)
	for i := range m.outcomes.inDoubt {
		d := &m.outcomes.inDoubt[i]
		d.asked = true
		s.Deliver(d.spec.Members[0], parley.Msg{
			Kind: service.Prepare, Value: uint64(d.path()), Seq: 1, Body: d.spec.Encode(),
		})
	}
	for _, t := range m.byAge() {
		t.voted = t.voted || m.outcomes.voted(t.spec)
		t.expires(s, m.c)
	}
	m.ask(s)
}

// Request handles the requests of package commit/service.
func (m *Machine) Request(s *parley.Step, q parley.Msg) {
	switch q.Kind {
	case service.Commit:
		t, ok := service.ReadSpec(q.Body, m.c.N)
		if !ok || t.Members[0] != m.self || len(t.Parts) == 0 {
			s.Refuse(m.self, "a transaction that cannot be read")
			return
		}
		if e := m.finished(t); e != nil {
			s.Deliver(m.self, e.Ended(service.Repeated))
			return
		}
		m.outcomes.want(s.Now, t)
		m.wait(s)
		s.Broadcast(parley.Msg{Kind: Begin, Body: q.Body})
	case service.Voted:
		m.vote(s, q)
	case service.Applied:
		if number := service.NumberOf(parley.Path(q.Value)); m.outcomes.done(number) {
			m.record(s, binary.AppendUvarint([]byte{doneRecord}, number))
		}
	}
}

// finished returns the finished transaction t, or nil if its outcome is unknown.
func (m *Machine) finished(t service.Spec) *service.Finished {
	for _, h := range []*service.History{&m.past, &m.heard} {
		if e := h.Named(t.Name); e != nil && e.Digest == t.Digest {
			return e
		}
	}
	return nil
}

// vote broadcasts the vote of this process. A yes is durable before it leaves the process.
func (m *Machine) vote(s *parley.Step, q parley.Msg) {
	t := m.open[service.NumberOf(parley.Path(q.Value))]
	if t == nil || t.voted || t.learned {
		return // the outcome is known
	}
	t.voted = true
	yes := q.Seq == 1
	if yes {
		own := t.spec.Only(m.self)
		m.record(s, append(binary.AppendUvarint([]byte{yesRecord}, t.number), own.Encode()...))
		m.outcomes.yes(s.Now, t.number, own)
		m.wait(s)
	}
	s.Broadcast(parley.Msg{Kind: Vote, Body: ballot(yes, t.spec, q.Body)})
}

// ballot returns the Body of a Vote or an Expire.
func ballot(yes bool, t service.Spec, why []byte) []byte {
	b := []byte{0}
	if yes {
		b[0] = 1
	}
	b = binary.BigEndian.AppendUint64(b, t.Digest)
	return append(parley.AppendBytes(b, t.Name), why...)
}

// vote is the decoded Body of a Vote or an Expire.
type vote struct {
	yes    bool
	digest uint64
	name   string
	why    []byte
}

// readBallot reads what ballot encodes.
func readBallot(b []byte) (v vote, ok bool) {
	if len(b) < 9 || b[0] > 1 {
		return v, false
	}
	v.yes, v.digest = b[0] == 1, binary.BigEndian.Uint64(b[1:])
	r := parley.Reader{Rest: b[9:]}
	v.name = string(r.Take(r.Number(service.MaxName)))
	v.why = r.Rest
	return v, !r.Bad
}

// Receive handles a delivery of the order. A liar may have broadcast it, so all correct processes handle it in the
// same way. Receive also handles the indications of the order, and a message from a link about an outcome.
func (m *Machine) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	switch {
	case q.Kind == From:
		m.from(q.Seq)
	case q.Kind == Live:
		m.live(s)
	case q.Kind >= parley.Local:
	case !s.Carried:
		m.hear(s, from, q)
	case m.missed || m.before(q):
	case q.Kind == Begin:
		if t, ok := service.ReadSpec(q.Body, m.c.N); ok && t.Members[0] == from && len(t.Parts) > 0 {
			m.begin(s, from, t)
		}
	case q.Kind == Vote || q.Kind == Expire:
		m.count(s, from, q)
	}
	if m.fresh >= saveAfter {
		m.save(s)
	}
}

// begin opens a transaction, unless its name is taken or its coordinator has too many open.
func (m *Machine) begin(s *parley.Step, from parley.ID, spec service.Spec) {
	answer := func(q parley.Msg) {
		if from == m.self && m.outcomes.find(spec) != nil { // it was requested since the last restart
			m.outcomes.forget(spec)
			s.Deliver(m.self, q)
		}
	}
	refuse := func(why uint64) { answer(parley.Msg{Kind: service.Refused, Seq: why, Body: []byte(spec.Name)}) }
	t, e := m.names[spec.Name], m.past.Named(spec.Name)
	switch {
	case t != nil && t.spec.Digest != spec.Digest, e != nil && e.Digest != spec.Digest:
		refuse(service.NameTaken)
		return
	case e != nil:
		answer(e.Ended(service.Repeated))
		return
	case t != nil:
		return
	}
	if l := m.loads[from]; l.count >= m.c.Open || l.bytes+spec.Size() > service.MaxParts {
		refuse(service.TooManyOpen)
		return
	}
	m.number++
	t = &transaction{number: m.number, spec: spec, learned: m.finished(spec) != nil}
	t.voted = m.repeating && m.outcomes.voted(spec)
	m.add(t)
	t.expires(s, m.c)
	if !m.repeating {
		t.prepare(s)
	}
}

// expires sets the timer after which the votes are late.
func (t *transaction) expires(s *parley.Step, c Config) {
	s.At(t.path(), 0, func() { s.SetTimer(expireTimer, c.Votes+2*c.Delta) })
}

// prepare requests the vote of the participant, if it is missing.
func (t *transaction) prepare(s *parley.Step) {
	if _, has := t.spec.Part(s.Self); has && !t.learned && !t.voted {
		s.Deliver(t.spec.Members[0], parley.Msg{
			Kind: service.Prepare, Value: uint64(t.path()), Body: t.spec.Only(s.Self).Encode(),
		})
	}
}

func (m *Machine) add(t *transaction) {
	m.open[t.number], m.names[t.spec.Name] = t, t
	l := &m.loads[t.spec.Members[0]]
	l.count++
	l.bytes += t.spec.Size()
}

func (m *Machine) remove(t *transaction) {
	delete(m.open, t.number)
	delete(m.names, t.spec.Name)
	l := &m.loads[t.spec.Members[0]]
	l.count--
	l.bytes -= t.spec.Size()
}

// count handles a Vote or an Expire.
func (m *Machine) count(s *parley.Step, from parley.ID, q parley.Msg) {
	b, ok := readBallot(q.Body)
	t := m.names[b.name]
	if !ok || t == nil || t.spec.Digest != b.digest || len(b.why) > service.MaxReason {
		return
	}
	_, votes := t.spec.Part(from)
	switch {
	case q.Kind == Expire:
		if t.expired.Add(from); t.expired.Len() > m.c.M {
			m.end(s, t, problem.Abort, service.AbortReason{By: from, Text: "not all votes came in time"})
		}
	case !votes:
	case !b.yes:
		m.end(s, t, problem.Abort, service.AbortReason{By: from, Text: string(b.why)})
	default:
		t.yes.Add(from)
		if !slices.ContainsFunc(t.spec.Parts, func(p service.Part) bool { return !t.yes.Has(p.ID) }) {
			m.end(s, t, problem.Commit, service.AbortReason{})
		}
	}
}

// end closes a transaction that the order has decided.
func (m *Machine) end(s *parley.Step, t *transaction, outcome problem.Outcome, why service.AbortReason) {
	m.remove(t)
	s.At(t.path(), 0, func() { s.StopTimer(expireTimer) })
	e := &service.Finished{
		Path: t.path(), Name: t.spec.Name, Digest: t.spec.Digest, Outcome: outcome, Why: why,
	}
	m.past.Add(e)
	waits, wanted := m.outcomes.voted(t.spec), m.outcomes.find(t.spec) != nil
	m.outcomes.know(t.spec)
	switch {
	case t.learned:
	case waits || !m.repeating:
		m.tell(s, e, t.spec)
	case wanted: // by a caller since the restart; the participant did not vote yes, or knows the outcome
		s.Deliver(t.spec.Members[0], e.Ended(service.Repeated))
	}
}

// tell delivers an outcome.
func (m *Machine) tell(s *parley.Step, e *service.Finished, t service.Spec) {
	told := service.Nobody
	if _, has := t.Part(m.self); has {
		told = service.Participant
	}
	s.Deliver(t.Members[0], e.Ended(told))
}

// Timeout broadcasts that this process has waited too long for votes, or asks for outcomes.
func (m *Machine) Timeout(s *parley.Step, timer parley.Timer) {
	if timer == askTimer {
		m.outcomes.ticking = false
		m.ask(s)
	} else if t := m.open[service.NumberOf(s.Path)]; t != nil && !m.missed {
		s.Broadcast(parley.Msg{Kind: Expire, Body: ballot(false, t.spec, nil)})
	}
}

// Find returns what the process knows of the transaction with the given name, and whether it knows any.
func (m *Machine) Find(name string) (t service.Transaction, known bool) {
	for _, h := range []*service.History{&m.past, &m.heard} {
		if e := h.Named(name); e != nil {
			return service.Transaction{Name: e.Name, Outcome: e.Outcome, Why: e.Why}, true
		}
	}
	if x := m.names[name]; x != nil {
		return x.look(), true
	}
	return t, false
}

// Live iterates over the open transactions, by age.
func (m *Machine) Live() iter.Seq[service.Transaction] {
	return func(yield func(service.Transaction) bool) {
		for _, t := range m.byAge() {
			if !yield(t.look()) {
				return
			}
		}
	}
}

func (t *transaction) look() service.Transaction {
	return service.Transaction{Name: t.spec.Name, Coordinator: t.spec.Members[0], Asked: true, Voted: t.voted, Yes: t.yes}
}
