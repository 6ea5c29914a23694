// Package service runs the transactions of a system. Any number of transactions can run at the same time. Each
// transaction has its own name, coordinator and participants.
//
// Each transaction solves atomic commitment (package problem): all its participants commit it, or all abort it.
// Package twophase or package quorum decides it. Both have the same model: processes crash and restart with their
// logs, and messages may be late or lost. In addition, links must keep the order of messages, and must not duplicate
// messages. The reason is that a restarted process no longer knows most transactions on which it voted no.
//
// A process has one machine, which contains an inner machine of twophase or quorum for each transaction. The
// members of a transaction are its coordinator and its participants. They are the processes of the inner machine,
// the coordinator first. The coordinator sends the members the description (spec) of a transaction before any other
// message about it. No process forgets a transaction before it has carried out the outcome.
//
// A path identifies a transaction. Its last eight bits are the ID of the coordinator, and its other bits are a
// number. The coordinator uses each number only once, even in different incarnations. At the coordinator a
// transaction is over when it is aborted, or when all members have carried it out. Then the coordinator reports this
// to the members, and they forget the transaction. The coordinator also forgets old transactions, but remembers the
// most recent ones.
//
// A member may ask the coordinator about a transaction that the coordinator does not know. The coordinator then
// answers that the transaction was aborted (presumed abort, as in package twophase). This answer is also correct with
// package quorum. A coordinator forgets a committed transaction only after all members have carried it out, and then
// no member asks.
package service

import (
	"fmt"
	"slices"

	"parley"
	"parley/commit/problem"
)

// The kinds of messages, in addition to those of the inner machines.
const (
	// msgBegin carries the spec of a transaction. Seq: 1 from the coordinator, which asks for a vote; 0 from a
	// member, which asks for the outcome. Value: all lower numbers are over. Body: a Spec.
	msgBegin parley.Kind = 0x20 + iota
	// msgDone notifies the coordinator of what the sender has carried out. Body: numbers.
	msgDone
	// msgOpen comes from a coordinator. Seq: its next number. Body: the numbers of the receiver's transactions
	// that are not over. All other numbers below Seq are over.
	msgOpen
	// msgWhy gives the coordinator the reason of a no. Value: 1 if the name is taken. Seq: then a NameClaim,
	// otherwise 0. Body: the reason in words.
	msgWhy
)

// The requests.
const (
	Commit  parley.Kind = parley.Local + 0x30 + iota // Body: a Spec with all parts
	Voted                                            // Value: the path; Seq: 1 yes, 0 no; Body: why no
	Applied                                          // Value: the path: the participant knows the outcome
)

// The deliveries. The sender is the coordinator of the transaction.
const (
	// Prepare asks the participant for its vote. Value: the path. Seq: 1 if the participant voted yes before a
	// crash. Body: a Spec.
	Prepare parley.Kind = parley.Local + 0x34 + iota
	// Ended is the outcome. Value: the path. Seq: a problem.Outcome. Origin: Nobody, Participant or
	// Repeated. Body: see ReadEnded.
	Ended
	// Refused answers a Commit that did not begin a transaction. Seq: NameTaken or TooManyOpen. Body: the
	// name.
	Refused
)

// Blocked indicates that a transaction is blocked. Value: the path. Body: see ReadBlocked.
const Blocked parley.Kind = parley.Indication + 0x3E

// The Origin of an Ended: whom an outcome concerns, in addition to the clients that wait for it.
const (
	Nobody      parley.ID = iota
	Participant           // the participant of this process
	Repeated              // nobody: the outcome was delivered before
)

// The reasons of a Refused.
const (
	NameTaken uint64 = 1 + iota
	TooManyOpen
)

// The timers. openTimer belongs to the machine and repeats what is over. voteTimer belongs to a transaction
// whose vote is missing or not requested.
const (
	openTimer parley.Timer = 0x100 + iota
	voteTimer
)

// The log records, by their first byte, in addition to those of the inner machines.
const (
	specRecord    = 0xF1 // 1 if the vote was yes, otherwise 0; and a Spec
	appliedRecord = 0xF2
)

// Machine is the machine of one process.
type Machine struct {
	txTable                       // what it knows of transactions
	completions completionTracker // how it forgets them
	log         txJournal

	scratch []parley.Effect // scratch: effects of an inner machine
	members memberHost      // scratch
}

func newMachine(c Config, self parley.ID) *Machine {
	m := &Machine{txTable: newBook(c, self), log: txJournal{most: c.Compact}}
	m.completions.txTable = &m.txTable
	return m
}

// Start continues the transactions that are not over.
func (m *Machine) Start(s *parley.Step) {
	first := m.c.First
	if first == 0 {
		first = s.Life<<perLife + 1
	}
	m.next = max(m.next, first)
	if m.c.Forgot {
		m.blank = first
		s.Compact()
	}
	if !s.Restart {
		return
	}
	logs := make(map[parley.Path][]parley.Record)
	for _, r := range s.Log {
		t := m.live[r.Path]
		switch {
		case len(r.Body) > 1 && r.Body[0] == specRecord:
			of, ok := ReadSpec(r.Body[2:], m.c.N)
			if !ok {
				panic(fmt.Sprintf("service: process %d does not know its record of a transaction", m.self))
			}
			if t == nil { // otherwise the checkpoint has it, as it was before the vote
				t = &transaction{path: r.Path, spec: of, inner: m.c.machine(of, m.self), logged: true}
				m.add(t)
			}
			t.yes = r.Body[1] == 1
			m.name(t)
		case t == nil:
			panic(fmt.Sprintf("service: process %d has a record of no transaction", m.self))
		case len(r.Body) == 1 && r.Body[0] == appliedRecord:
			t.told = true
		default:
			logs[r.Path] = append(logs[r.Path], parley.Record{Body: r.Body})
		}
	}
	m.log.records = len(s.Log)
	m.again(s, logs)
	m.completions.sendOpen(s)
	m.completions.beat(s)
}

// again starts the inner machines. Before that, it delivers to the participant what was prepared before the
// crash.
func (m *Machine) again(s *parley.Step, logs map[parley.Path][]parley.Record) {
	all := slices.Collect(m.all()) // a copy: some end in the loop
	for _, t := range all {
		if _, has := t.spec.Part(m.self); has && t.yes && !t.told {
			s.Deliver(t.spec.Members[0], parley.Msg{
				Kind: Prepare, Value: uint64(t.path), Seq: 1, Body: t.spec.Only(m.self).Encode(),
			})
		}
	}
	log := s.Log
	for _, t := range all {
		t.given, t.begun = true, true
		s.Log = logs[t.path]
		m.within(s, t, func(inner parley.Machine) { inner.Start(s) })
	}
	s.Log = log
}

// Request handles the requests above.
func (m *Machine) Request(s *parley.Step, q parley.Msg) {
	t := m.live[parley.Path(q.Value)]
	switch {
	case q.Kind == Commit:
		m.commit(s, q)
	case t == nil: // the transaction is over
	case q.Kind == Voted:
		m.voted(s, t, q.Seq == 1, AbortReason{By: m.self, Text: string(q.Body)})
	case q.Kind == Applied:
		m.applied(s, t)
	}
	m.log.compact(s, len(m.live))
}

// commit begins a transaction, unless its name is taken.
func (m *Machine) commit(s *parley.Step, q parley.Msg) {
	of, ok := ReadSpec(q.Body, m.c.N)
	if !ok || of.Members[0] != m.self {
		s.Refuse(m.self, "a transaction that cannot be read")
		return
	}
	refuse := func(why uint64) {
		s.Deliver(m.self, parley.Msg{Kind: Refused, Seq: why, Body: []byte(of.Name)})
	}
	if t := m.names[of.Name]; t != nil {
		switch {
		case t.spec.Digest != of.Digest:
			refuse(NameTaken)
		case t.outcome != problem.Undecided:
			s.Deliver(t.spec.Members[0], t.finished().Ended(Repeated))
		case t.blocked:
			m.tellBlocked(s, t)
		}
		return
	}
	if e := m.history.Named(of.Name); e != nil {
		if e.Digest != of.Digest {
			refuse(NameTaken)
			return
		}
		s.Deliver(CoordinatorOf(e.Path), e.Ended(Repeated))
		return
	}
	own := &m.of[m.self]
	if len(own.list) >= 4*m.c.Open {
		refuse(TooManyOpen)
		return
	}
	t := &transaction{path: PathOf(m.self, m.next), spec: of.Only(m.self), inner: m.c.machine(of, m.self)}
	m.add(t)
	low := NumberOf(own.list[0].path)
	for _, id := range of.Members[1:] {
		send(s, id, t.path, parley.Msg{Kind: msgBegin, Seq: 1, Value: low, Body: of.Only(id).Encode()})
	}
	m.within(s, t, func(inner parley.Machine) { inner.Start(s) })
	m.ask(s, t)
}

// ask asks the participant for its vote. A process without a part votes yes.
func (m *Machine) ask(s *parley.Step, t *transaction) {
	if _, has := t.spec.Part(m.self); !has {
		m.voted(s, t, true, AbortReason{})
		return
	}
	s.Deliver(t.spec.Members[0], parley.Msg{
		Kind: Prepare, Value: uint64(t.path), Body: t.spec.Only(m.self).Encode(),
	})
	wait := m.c.Votes
	if CoordinatorOf(t.path) != m.self {
		wait += m.c.Delta
	}
	s.At(t.path, 0, func() { s.SetTimer(voteTimer, wait) })
}

// voted handles the vote of this process. Only the first vote counts.
func (m *Machine) voted(s *parley.Step, t *transaction, yes bool, why AbortReason) {
	if t.ready {
		return
	}
	t.ready, t.yes = true, yes
	if c := CoordinatorOf(t.path); !yes && t.outcome == problem.Undecided {
		if c == m.self {
			t.why = why
		} else {
			q := parley.Msg{Kind: msgWhy, Seq: uint64(why.Claim), Body: []byte(why.Text)}
			if why.Claim != Free {
				q.Value = 1
			}
			send(s, c, t.path, q)
		}
	}
	m.give(s, t, false)
}

// give hands the vote to the inner machine. In two phases the inner machine of a participant that votes yes
// and gets no vote request soon aborts. So a yes is held until the vote request arrives or voteTimer expires.
func (m *Machine) give(s *parley.Step, t *transaction, waited bool) {
	held := !m.c.Majority && CoordinatorOf(t.path) != m.self && t.yes && !t.asked && !waited
	if t.given || t.outcome != problem.Undecided || held || !t.ready && !waited {
		return
	}
	t.given = true
	s.At(t.path, 0, func() { s.StopTimer(voteTimer) })
	vote := []byte("no")
	if t.ready && t.yes {
		vote = []byte("yes")
	}
	m.within(s, t, func(inner parley.Machine) {
		inner.Request(s, parley.Msg{Kind: parley.Propose, Body: vote})
	})
}

// State visits every variable of the machine.
func (m *Machine) State(v *parley.Vars) {
	v.Durable(func() { m.txTable.durable(v) })
	m.txTable.volatile(v)
	parley.Num(v, "records", &m.log.records)
	v.Bool("news", &m.completions.news)
	v.Bool("pulse", &m.completions.pulse)
}

// perLife is the number of bits for transactions that a process begins in one incarnation, if Config does not
// set First.
const perLife = 20
