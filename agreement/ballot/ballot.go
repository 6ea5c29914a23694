// Package ballot is one decision among processes that may crash, restart and
// wrongly suspect one another: consensus by ballots and majorities, known as the
// synod protocol.
//
// The problem: each of n processes may propose a value; all that decide must
// decide on the same one, and it must have been proposed. That holds of processes
// that crash later, too (uniform agreement), and whatever happens to messages:
// they may be lost, doubled, late or in any order.
//
// The bound: asynchronous messages, crash faults, n >= 2m+1. Processes may restart
// with what they made durable; one that lost its disk must not come back. Time is
// needed to end, never to be right: it ends once a majority is up, connected, and
// left alone by rival ballots for as long as one takes. Nothing is promised of
// processes that lie.
//
// A process that wants a decision numbers a ballot, higher than all it knows of,
// and asks all for a promise to take part in no lower one. A process that promises says what it
// accepted last. With the promises of a majority the owner of the ballot proposes the
// value of the highest accepted ballot that it was told of, or if there is none one
// of its choice. What a majority accepts is decided.
//
// Why it works: any two majorities share a process. So when a value has been
// accepted by a majority in some ballot, the owner of every higher ballot hears of
// it, or of the value of a ballot in between, which for the same reason is the same.
//
// An [Instance] is the decision alone, for a machine around it to drive: beside the
// promise each process gives a report, fixed at its first promise, and the value is
// chosen from the reports. [New] makes of it plain consensus, where the report is
// empty and the choice one's own proposal.
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
	// Promise answers it. Seq: the ballot. Value: the highest ballot accepted so far,
	// 0 if none. Body: the value accepted in it and the report, see record.go.
	Promise
	// Refuse answers Prepare and Accept of a ballot that comes too late. Seq: the
	// ballot that was promised instead. With Seq 0 a strict process answers Accept of
	// a ballot that it was never asked to promise: it wants to be asked first.
	Refuse
	// Accept proposes. Seq: the ballot. Body: the value.
	Accept
	// Accepted answers it. Seq: the ballot.
	Accepted
	// Decision tells of the outcome. Body: the value.
	Decision
	// Last is the last kind in use.
	Last = Decision
)

// highest is above every ballot that comes about without a liar. What one says must not use
// ballots up: others are believed up to reach above highest, or above what this process
// already goes by, so that there is one above that of a liar which all take, but if it aims at
// the very end of that. Reach is short, so that what is wrong by chance is hardly ever within.
const (
	highest = 1 << 48
	reach   = 1 << 24
	utmost  = 1 << 62 // of all that are read
)

// Owner is the machine around an instance.
type Owner interface {
	// Report returns what this process has to say for the choice. It is asked for
	// once, at the first promise, and once more after a restart or [Instance.Refresh]: then
	// it must not say less than it did.
	Report() []byte
	// Choose makes the value of the reports of a majority, in the order of ids.
	Choose(reports []Report) []byte
	// Enough reports whether the reports of a majority, in the order of ids, are enough. When
	// that may have changed the owner calls Reconsider.
	Enough(reports []Report) bool
	// Decided tells of the decision, once in the life of a process, and who told it;
	// oneself of one's own ballot, and then all were sent the decision. It is the last thing an
	// instance does in a clause: the owner may put another in its place.
	Decided(s *parley.Step, from parley.ID, value []byte)
}

// Report is what a process said with its promise.
type Report struct {
	From parley.ID
	Body []byte
}

// phase is what the owner of a ballot waits for.
type phase uint8

const (
	idle      phase = iota
	preparing       // promises
	accepting       // that the value is accepted
)

// promise is one that the owner of a ballot has received.
type promise struct {
	from     parley.ID
	accepted uint64
	value    []byte
	report   []byte
}

// members take part in a decision, in the order of ranks.
type members []parley.ID

// rank is the place of a member among the members, -1 of others.
func (m members) rank(id parley.ID) int { return slices.Index(m, id) }

func (m members) majority() int { return len(m)/2 + 1 }

func (m members) set() parley.Set { return parley.SetOf(m...) }

// least returns the least ballot of a member above another ballot.
func (m members) least(of parley.ID, above uint64) uint64 {
	n, rank := uint64(len(m)), uint64(m.rank(of))
	b := max(above/n, 1)*n + rank
	if b <= above {
		b += n
	}
	return b
}

// Instance is one process's part in one decision. Its clauses are those of a
// machine, but for the timers: when to start a ballot is the owner's to say.
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
	fixed     bool // report is
	report    []byte
	own       uint64 // this process's ballot
	phase     phase
	promisers parley.Set
	promises  []promise // in the order of ids
	chosen    []byte    // the value of ballot own
	accepts   parley.Set
	seen      uint64 // the highest ballot it was refused for
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

// Decision returns the value decided on, once there is one.
func (i *Instance) Decision() (value []byte, decided bool) { return i.decision, i.decided }

// Strict has the instance accept only in ballots that it has promised, so that a message which
// is wrong by chance proposes nothing.
func (i *Instance) Strict() { i.strict = true }

// Took tells whether this process has accepted the value, last of all.
func (i *Instance) Took(value []byte) bool { return i.accepted > 0 && bytes.Equal(i.value, value) }

// Promised tells whether this process has promised anything.
func (i *Instance) Promised() bool { return i.promised > 0 }

// Refresh is for an owner that has more to say: the next promise asks for the report again,
// which must not say less.
func (i *Instance) Refresh() { i.fixed, i.report = false, nil }

// Started tells whether this process has a ballot under way.
func (i *Instance) Started() bool { return i.phase != idle && !i.decided }

// Propose starts a ballot of this process.
func (i *Instance) Propose(s *parley.Step) {
	if i.decided {
		return
	}
	// upon propose or retry: b := the least own ballot above promised and seen
	i.own = i.members.least(i.self, max(i.promised, i.seen))
	i.phase = preparing
	i.promisers, i.promises, i.accepts, i.chosen = parley.Set{}, nil, parley.Set{}, nil
	// send PREPARE(b) to all, oneself too: one's own promise is durable before
	// anything of this step leaves, so that after a restart no ballot is used twice
	i.tellAll(s, parley.Msg{Kind: Prepare, Seq: i.own})
}

// Receive takes a message of the instance. Others than its kinds it does not know.
func (i *Instance) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	if why := i.misfit(from, m); why != "" {
		s.Refuse(from, why)
		return
	}
	switch m.Kind {
	case Prepare, Accept:
		i.asked(s, from, m)
	case Promise:
		i.promisedBy(s, from, m)
	case Accepted:
		i.acceptedBy(s, from, m.Seq)
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

// asked is upon receiving PREPARE(b) or ACCEPT(b, v) from q.
func (i *Instance) asked(s *parley.Step, q parley.ID, m parley.Msg) {
	b := m.Seq
	switch {
	// decided: send DECIDE(v) to q
	case i.decided:
		i.tell(s, q, parley.Msg{Kind: Decision, Body: i.decision})
	// b < promised: send REFUSE(promised) to q
	case b < i.promised:
		i.tell(s, q, parley.Msg{Kind: Refuse, Seq: i.promised})
	// promised := b; fix the report; Append; send PROMISE(b, ab, av, report) to q
	case m.Kind == Prepare:
		if b > i.promised {
			i.promised = b
			s.Append(promiseRecord(b))
		}
		i.fix()
		i.tell(s, q, parley.Msg{Kind: Promise, Seq: b, Value: i.accepted, Body: promiseBody(i.value, i.report)})
	// strict, and b not promised: the PREPARE was lost, or came when this process could not
	// vote. Send REFUSE(0) to q, which asks again
	case i.strict && b != i.promised:
		i.tell(s, q, parley.Msg{Kind: Refuse})
	// promised := b; (ab, av) := (b, v); fix the report; Append; send ACCEPTED(b)
	default:
		if b > i.accepted {
			i.promised, i.accepted, i.value = b, b, m.Body
			s.Append(acceptRecord(b, m.Body))
		}
		i.fix()
		i.tell(s, q, parley.Msg{Kind: Accepted, Seq: b})
	}
}

// fix fixes the report, which a process gives once.
func (i *Instance) fix() {
	if !i.fixed {
		i.fixed, i.report = true, i.owner.Report()
	}
}

// promisedBy is upon receiving PROMISE(b, ab, av, report) from q.
func (i *Instance) promisedBy(s *parley.Step, q parley.ID, m parley.Msg) {
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
		return // it came twice
	}
	at, _ := slices.BinarySearchFunc(i.promises, q, func(p promise, id parley.ID) int { return cmp.Compare(p.from, id) })
	i.promises = slices.Insert(i.promises, at, promise{q, m.Value, value, report})
	i.Reconsider(s)
}

// Reconsider goes on to the second phase if there are promises enough for it.
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
	i.tellAll(s, parley.Msg{Kind: Accept, Seq: i.own, Body: i.chosen})
}

func (i *Instance) reports() []Report {
	var all []Report
	for _, p := range i.promises {
		all = append(all, Report{p.from, p.report})
	}
	return all
}

// acceptedBy is upon receiving ACCEPTED(b) from q.
func (i *Instance) acceptedBy(s *parley.Step, q parley.ID, b uint64) {
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

// decide: decided := v; Append; tell the owner, once. Of all else nothing more is
// needed: a process that asks gets the decision.
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

// Inform sends the decision, which there must be, to the given processes.
func (i *Instance) Inform(s *parley.Step, who parley.Set) {
	s.SendTo(who, parley.Msg{Kind: Decision, Body: i.decision})
}

// Repeat sends to one member again what the ballot under way of this process waits for: it
// may have come before that member could take part.
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

// tell sends to a member. What a process tells itself it hears in the same step.
func (i *Instance) tell(s *parley.Step, to parley.ID, m parley.Msg) {
	if to == i.self {
		i.Receive(s, to, m)
		return
	}
	s.Send(to, m)
}

// tellAll sends to all members, the last of them oneself.
func (i *Instance) tellAll(s *parley.Step, m parley.Msg) {
	s.SendTo(i.members.set(), m)
	i.tell(s, i.self, m)
}
