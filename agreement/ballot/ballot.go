// Package ballot implements consensus by numbered ballots and majorities, known as the synod protocol (Paxos). The
// processes make one decision, even if they crash, restart, or wrongly suspect each other of a crash.
//
// The problem: each of n processes may propose a value. All processes that decide must decide on the same value, and
// this value must have been proposed. This includes processes that crash after their decision (uniform agreement).
// Agreement must hold even if messages are lost, duplicated, late or reordered.
//
// The bound: asynchronous messages, crash faults, n >= 2m+1. Processes may restart with their durable state. A
// process that lost its disk must not rejoin. Safety never depends on time, but termination does. The processes
// decide when two conditions hold for long enough: a majority is up and connected, and only one ballot is active.
// Nothing is promised if processes lie.
//
// A process that wants a decision starts a ballot. This process is the owner of the ballot. The number of the ballot
// is higher than all numbers that the process knows. The owner asks all processes for a promise to take part in no
// lower ballot. A promise reports the value that its sender accepted last, and the ballot in which it accepted this
// value. When the owner has the promises of a majority, it proposes one of the reported values: the value with the
// highest ballot. If no promise reports a value, the owner proposes a value of its choice. If a majority accepts a
// value in one ballot, the value is decided.
//
// Why it works: any two majorities share a process. Suppose that a majority has accepted a value in some ballot.
// Then the owner of the next higher ballot receives at least one report of this value, and proposes the same value.
// By induction, the owners of all higher ballots do so, too.
//
// An [Instance] makes one decision for another machine that contains it. Each process adds a report to its first
// promise, and repeats the same report in later promises. If no value has been accepted, the owner computes its
// proposal from the reports. [New] makes plain consensus from an Instance: reports are empty, and each owner proposes
// its own value.
//
// Source: Lamport, The Part-Time Parliament (1998), section 2.
package ballot

import (
	"bytes"
	"cmp"
	"slices"

	"parley"
)

// The messages. A machine around an instance numbers its own kinds from Last+1.
// Ballot b of n processes is k*n + rank of its owner, with k from 1; 0 is none.
const (
	// Prepare asks for a promise. Seq: the ballot.
	Prepare parley.Kind = iota + 1
	// Promise answers Prepare. Seq: the ballot. Value: the highest ballot in which the sender accepted a value, or 0.
	// Body: this value and the report (see record.go).
	Promise
	// Refuse answers Prepare and Accept of a ballot that comes too late. Seq: the ballot that was promised instead.
	// If a strict process receives Accept of a ballot whose Prepare it has not received, it answers with Seq 0. So it
	// asks for the Prepare.
	Refuse
	// Accept proposes. Seq: the ballot. Body: the value.
	Accept
	// Accepted answers Accept. Seq: the ballot.
	Accepted
	// Decision reports the outcome. Body: the value.
	Decision
	// Last is the last kind in use.
	Last = Decision
)

// highest is above every ballot that occurs without a faulty process. A faulty process must not use
// ballots up: a ballot is accepted up to reach above highest, or above the highest that this process
// already uses. So there is a higher ballot that all processes accept, unless a faulty process names the
// very end of that range. Reach is short, so that a corrupt number is hardly ever within it.
const (
	highest   = 1 << 48
	reach     = 1 << 24
	maxBallot = 1 << 62 // no higher ballot is read
)

// Owner is the machine around an instance.
type Owner interface {
	// Report returns this process's report for the choice. It is called once, at the first promise, and again after a
	// restart or [Instance.Refresh]. When it is called again, it must report at least as much as before.
	Report() []byte
	// Choose returns the value for the reports of a majority, in the order of IDs.
	Choose(reports []Report) []byte
	// Enough reports whether the reports of a majority, in the order of IDs, are enough. When
	// that may have changed, the owner calls Reconsider.
	Enough(reports []Report) bool
	// Decided receives the decision and its sender, once per incarnation of a process. If the sender is the process
	// itself, its own ballot decided, and the decision was sent to all. The call is the last action of an instance in
	// a clause, so the owner may replace the instance.
	Decided(s *parley.Step, from parley.ID, value []byte)
}

// Report is a process's report with its promise.
type Report struct {
	From parley.ID
	Body []byte
}

// phase is what the owner of a ballot waits for.
type phase uint8

const (
	idle      phase = iota
	preparing       // for promises
	accepting       // for acceptances of the value
)

type promise struct {
	from     parley.ID
	accepted uint64
	value    []byte
	report   []byte
}

// members take part in a decision, in the order of ranks.
type members []parley.ID

// rank returns the index of a member among the members, or -1.
func (m members) rank(id parley.ID) int { return slices.Index(m, id) }

func (m members) majority() int { return len(m)/2 + 1 }

func (m members) set() parley.Set { return parley.SetOf(m...) }

// leastBallot returns the least ballot of member of that is above the given ballot.
func (m members) leastBallot(of parley.ID, above uint64) uint64 {
	n, rank := uint64(len(m)), uint64(m.rank(of))
	b := max(above/n, 1)*n + rank
	if b <= above {
		b += n
	}
	return b
}

// Instance is one process's part in one decision. Its clauses are the clauses of a
// machine, except timers: the owner decides when to start a ballot.
type Instance struct {
	self    parley.ID
	members members
	owner   Owner

	// Durable.
	promised uint64
	accepted uint64 // the ballot of value
	value    []byte
	decided  bool
	decision []byte

	// Volatile.
	fixed     bool // report is fixed
	report    []byte
	own       uint64 // this process's current ballot
	phase     phase
	promisers parley.Set
	promises  []promise // in the order of ids
	chosen    []byte    // the value of ballot own
	accepts   parley.Set
	seen      uint64 // the highest ballot that a Refuse named
	strict    bool   // scratch: see Strict
}

// NewInstance returns the part of one of the members in a decision among them.
func NewInstance(self parley.ID, members parley.Set, owner Owner) *Instance {
	i := &Instance{self: self, owner: owner}
	for id := range members.All() {
		i.members = append(i.members, id)
	}
	return i
}

// Decision returns the decided value, if there is one.
func (i *Instance) Decision() (value []byte, decided bool) { return i.decision, i.decided }

// Strict makes the instance accept only in ballots that it has promised, so that a corrupt
// message cannot propose a value.
func (i *Instance) Strict() { i.strict = true }

// Took reports whether this process accepted value last.
func (i *Instance) Took(value []byte) bool { return i.accepted > 0 && bytes.Equal(i.value, value) }

// Promised reports whether this process has promised anything.
func (i *Instance) Promised() bool { return i.promised > 0 }

// Refresh is for an owner with a larger report. The next promise calls Report again, and the new report must contain
// at least as much as the last one.
func (i *Instance) Refresh() { i.fixed, i.report = false, nil }

// Started reports whether this process has a ballot in flight.
func (i *Instance) Started() bool { return i.phase != idle && !i.decided }

// Propose starts a ballot of this process.
func (i *Instance) Propose(s *parley.Step) {
	if i.decided {
		return
	}
	// upon propose or retry: b := the least own ballot above promised and seen
	i.own = i.members.leastBallot(i.self, max(i.promised, i.seen))
	i.phase = preparing
	i.promisers, i.promises, i.accepts, i.chosen = parley.Set{}, nil, parley.Set{}, nil
	// send PREPARE(b) to all, oneself too: one's own promise is durable before
	// anything of this step leaves, so that after a restart no ballot is used twice
	i.sendAll(s, parley.Msg{Kind: Prepare, Seq: i.own})
}

// Receive handles a message of the instance. It refuses other kinds.
func (i *Instance) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	if why := i.misfit(from, m); why != "" {
		s.Refuse(from, why)
		return
	}
	switch m.Kind {
	case Prepare, Accept:
		i.onPrepareOrAccept(s, from, m)
	case Promise:
		i.onPromise(s, from, m)
	case Accepted:
		i.onAccepted(s, from, m.Seq)
	case Refuse:
		// upon REFUSE(b'): seen := max(seen, b'); of REFUSE(0), send PREPARE and ACCEPT of
		// the ballot under way to q
		if i.seen = max(i.seen, m.Seq); m.Seq == 0 {
			i.Repeat(s, from)
		}
	case Decision:
		// upon DECIDE(v)
		i.decide(s, from, m.Body)
	}
}

func (i *Instance) onPrepareOrAccept(s *parley.Step, q parley.ID, m parley.Msg) {
	b := m.Seq
	switch {
	// decided: send DECIDE(v) to q
	case i.decided:
		i.send(s, q, parley.Msg{Kind: Decision, Body: i.decision})
	// b < promised: send REFUSE(promised) to q
	case b < i.promised:
		i.send(s, q, parley.Msg{Kind: Refuse, Seq: i.promised})
	// promised := b; fix the report; Append; send PROMISE(b, ab, av, report) to q
	case m.Kind == Prepare:
		if b > i.promised {
			i.promised = b
			s.Append(promiseRecord(b))
		}
		i.fix()
		i.send(s, q, parley.Msg{Kind: Promise, Seq: b, Value: i.accepted, Body: promiseBody(i.value, i.report)})
	// strict, and b not promised: the PREPARE was lost, or came when this process could not
	// vote. Send REFUSE(0) to q, which asks again
	case i.strict && b != i.promised:
		i.send(s, q, parley.Msg{Kind: Refuse})
	// promised := b; (ab, av) := (b, v); fix the report; Append; send ACCEPTED(b)
	default:
		if b > i.accepted {
			i.promised, i.accepted, i.value = b, b, m.Body
			s.Append(acceptRecord(b, m.Body))
		}
		i.fix()
		i.send(s, q, parley.Msg{Kind: Accepted, Seq: b})
	}
}

// fix fixes the report, which a process gives once.
func (i *Instance) fix() {
	if !i.fixed {
		i.fixed, i.report = true, i.owner.Report()
	}
}

// onPromise handles PROMISE(b, ab, av, report) from q.
func (i *Instance) onPromise(s *parley.Step, q parley.ID, m parley.Msg) {
	// b is my ballot, and I am in its first phase: record it
	if m.Seq != i.own || i.phase != preparing {
		return
	}
	value, report, ok := readPromise(m.Body)
	if !ok || m.Value == 0 && len(value) > 0 {
		s.Refuse(q, "promise that cannot be read")
		return
	}
	if !i.promisers.Add(q) {
		return // a duplicate
	}
	at, _ := slices.BinarySearchFunc(i.promises, q, func(p promise, id parley.ID) int { return cmp.Compare(p.from, id) })
	i.promises = slices.Insert(i.promises, at, promise{q, m.Value, value, report})
	i.Reconsider(s)
}

// Reconsider starts the second phase if there are enough promises.
func (i *Instance) Reconsider(s *parley.Step) {
	// |promises| >= majority and enough(promisers)
	if i.phase != preparing || i.promisers.Len() < i.members.majority() || !i.owner.Enough(i.reports()) {
		return
	}
	// v := av of the greatest ab > 0, if any, else choose(reports)
	var last uint64
	for _, p := range i.promises {
		if p.accepted > last {
			last, i.chosen = p.accepted, p.value
		}
	}
	if last == 0 {
		i.chosen = i.owner.Choose(i.reports())
	}
	// phase := 2; remember v; send ACCEPT(b, v) to all, oneself too
	i.phase = accepting
	i.promises = nil
	i.sendAll(s, parley.Msg{Kind: Accept, Seq: i.own, Body: i.chosen})
}

func (i *Instance) reports() []Report {
	var all []Report
	for _, p := range i.promises {
		all = append(all, Report{p.from, p.report})
	}
	return all
}

// onAccepted handles ACCEPTED(b) from q.
func (i *Instance) onAccepted(s *parley.Step, q parley.ID, b uint64) {
	if b != i.own || i.phase != accepting {
		return
	}
	i.accepts.Add(q)
	// from a majority: decided := the remembered v, which need not be what this
	// process accepted last; Append; send DECIDE(v) to all
	if i.accepts.Len() >= i.members.majority() {
		i.decide(s, i.self, i.chosen)
	}
}

// decide: decided := v; Append; notify the owner, once. The instance needs no other state
// from then on: it answers every question with the decision.
func (i *Instance) decide(s *parley.Step, from parley.ID, v []byte) {
	if i.decided {
		return
	}
	i.decided, i.decision = true, v
	s.Append(decisionRecord(v))
	i.phase, i.own, i.chosen, i.promises = idle, 0, nil, nil
	i.promisers, i.accepts = parley.Set{}, parley.Set{}
	i.promised, i.accepted, i.value, i.seen = 0, 0, nil, 0
	i.fixed, i.report = false, nil
	if from == i.self {
		i.Inform(s, i.members.set())
	}
	i.owner.Decided(s, from, v)
}

// Inform sends the decision, which must exist, to the given processes.
func (i *Instance) Inform(s *parley.Step, who parley.Set) {
	s.SendTo(who, parley.Msg{Kind: Decision, Body: i.decision})
}

// Repeat sends a member again the message to which this process's ballot in flight waits for an answer. The first
// copy may have arrived before the member could take part.
func (i *Instance) Repeat(s *parley.Step, to parley.ID) {
	switch {
	case i.decided || to == i.self:
	case i.phase == preparing:
		s.Send(to, parley.Msg{Kind: Prepare, Seq: i.own})
	case i.phase == accepting:
		if i.strict {
			s.Send(to, parley.Msg{Kind: Prepare, Seq: i.own})
		}
		s.Send(to, parley.Msg{Kind: Accept, Seq: i.own, Body: i.chosen})
	}
}

// send sends to a member. A message to the process itself is handled in the same step.
func (i *Instance) send(s *parley.Step, to parley.ID, m parley.Msg) {
	if to == i.self {
		i.Receive(s, to, m)
		return
	}
	s.Send(to, m)
}

// sendAll sends to all members, last to the process itself.
func (i *Instance) sendAll(s *parley.Step, m parley.Msg) {
	s.SendTo(i.members.set(), m)
	i.send(s, i.self, m)
}
