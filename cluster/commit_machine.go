package cluster

import (
	"fmt"
	"slices"

	"parley"
	"parley/agreement/ballot"
	"parley/commit/problem"
	"parley/commit/quorum"
	"parley/commit/twophase"
)

// Transactions of a node are one machine: it has the machine of package twophase or quorum
// for each of them, among the members that take part, the coordinator first. It says what a
// transaction is before any message of it, and has outcomes carried out before they are
// forgotten.
//
// A transaction is named by its path: a number of the coordinator's, which none of its lives
// uses twice, and the coordinator in the last eight bits. It is over at the coordinator when
// it is aborted, or all have carried it out. What is over is forgotten there but for the
// last of them, and of what is not known any more and was its own the coordinator says that
// it was aborted: that is the presumption of package twophase, and for the same reason holds
// of package quorum. The others forget what the coordinator says is over.

// The messages beside those of the machines inside.
const (
	// txBegin says what a transaction is. Seq: 1 from the coordinator that asks for a vote; 0
	// from one that asks what became of it. Value: all numbers below are over. Body: a sheet.
	txBegin parley.Kind = 0x20 + iota
	// txDone tells the coordinator what has been carried out. Body: numbers.
	txDone
	// txOpen is from a coordinator. Seq: the next number. Body: numbers of transactions of the
	// receiver's that are not over; all others below Seq are.
	txOpen
	// txWhy tells the coordinator why the vote is no. Value: 1 if the name is taken. Seq: then
	// a taking, or 0. Body: in words.
	txWhy
)

// The requests.
const (
	txCommit  parley.Kind = parley.Local + 0x30 + iota // Body: a sheet with everybody's part
	txVoted                                            // Value: the path; Seq: 1 yes, 0 no; Body: why
	txApplied                                          // Value: the path: the participant knows the end
)

// What is delivered, and from whom: the coordinator.
const (
	// txPrepare asks the participant. Value: the path. Seq: 1 if it had said yes before a
	// crash. Body: a sheet.
	txPrepare parley.Kind = parley.Local + 0x34 + iota
	// txEnded is the outcome. Value: the path. Seq: a problem.Outcome. Origin: 1 if the
	// participant is to be told. Body: an ending.
	txEnded
	// txRefused is the answer to txCommit of what is not begun. Seq: a refusal. Body: the name.
	txRefused
)

// txBlocked is indicated of a transaction that is blocked. Value: the path. Body: the name,
// and the set of who is waited for.
const txBlocked parley.Kind = parley.Indication + 0x3E

// Why a transaction is not begun.
const (
	nameTaken uint64 = 1 + iota
	tooManyOpen
)

// The timers: of the machine, to tell what is over; and of a transaction, for a vote that
// does not come, or is not asked for.
const (
	openTimer parley.Timer = 0x100 + iota
	voteTimer
)

// The records beside those of the machines inside, by their first byte.
const (
	sheetRecord   = 0xF1 // 1 if the vote was yes, else 0; and a sheet
	appliedRecord = 0xF2
)

// txRules is what transactions are decided by.
type txRules struct {
	n            int
	protocol     CommitProtocol
	delta, votes parley.Tick
	open         int // at most, of one coordinator
	remember     int
	forgot       bool   // what it knew before a crash is lost
	first        uint64 // numbers begin here, unless the log has larger ones
}

// mostParts is how many bytes of parts are held for one coordinator.
const mostParts = 4 << 20

// transactions is one process.
type transactions struct {
	c    txRules
	self parley.ID

	next    uint64 // number of the next own one
	blank   uint64 // what this node knew of own ones below is lost, and of others' ones; 0: nothing is
	live    map[parley.Path]*transaction
	names   map[string]*transaction // of live ones
	of      []coordinated           // by coordinator
	past    past
	records int  // since the log was compacted
	news    bool // something is over that others do not know to be
	pulse   bool // openTimer is set

	scratch []parley.Effect // scratch: of a machine inside
	mapped  mappedHost      // scratch
}

// coordinated are the transactions of one coordinator.
type coordinated struct {
	list  []*transaction // in order of numbers
	bytes int            // of parts
	low   uint64         // what is below is over
	below uint64         // and what is below this, unless it is in open
	open  []uint64
}

// transaction is what is known of one.
type transaction struct {
	path    parley.Path
	sheet   sheet // whose parts are this node's alone
	inner   parley.Machine
	logged  bool // the sheet is
	outcome problem.Outcome
	told    bool       // the participant knows it
	acked   parley.Set // at the coordinator: who has carried it out

	asked, ready, yes, given bool       // for a vote; there is one; it is yes; the machine inside has it
	begun                    bool       // the others have been asked, perhaps in a life before
	heard                    parley.Set // who has said what it knows since this node asked
	blocked                  bool
	reminded                 bool   // told, for as long as the timer takes
	why                      ending // of an abort
}

func newTransactions(c txRules, self parley.ID) *transactions {
	return &transactions{
		c: c, self: self, next: c.first, live: make(map[parley.Path]*transaction),
		names: make(map[string]*transaction), of: make([]coordinated, c.n), past: newPast(c.remember),
	}
}

// txPath is the path of a transaction.
func txPath(coordinator parley.ID, number uint64) parley.Path {
	return parley.Path(number)<<8 | parley.Path(coordinator)
}

func coordinatorOf(p parley.Path) parley.ID { return parley.ID(p & 0xFF) }
func numberOf(p parley.Path) uint64         { return uint64(p >> 8) }

// machine makes the machine inside.
func (m *transactions) machine(of sheet) parley.Machine {
	k := len(of.members)
	local := of.place(m.self)
	votes := m.c.votes + 2*m.c.delta // longer than a node waits for its participant
	switch {
	case k == 1:
		return new(single)
	case m.c.protocol == Majority:
		return quorum.New(quorum.Config{N: k, M: (k - 1) / 2, Delta: m.c.delta, Votes: votes}).New(local)
	}
	return twophase.New(twophase.Config{N: k, Delta: m.c.delta, Votes: votes}).New(local)
}

// Start goes on with what is not over.
func (m *transactions) Start(s *parley.Step) {
	m.next = max(m.next, m.c.first)
	if m.c.forgot {
		m.blank = m.c.first
		s.Compact()
	}
	if !s.Restart {
		return
	}
	logs := make(map[parley.Path][]parley.Record)
	for _, r := range s.Log {
		t := m.live[r.Path]
		switch {
		case len(r.Body) > 1 && r.Body[0] == sheetRecord:
			of, ok := readSheet(r.Body[2:], m.c.n)
			if !ok {
				panic(fmt.Sprintf("cluster: node %d does not know its record of a transaction", m.self))
			}
			if t == nil { // else the state has it, as it was before its vote
				t = &transaction{path: r.Path, sheet: of, inner: m.machine(of), logged: true}
				m.add(t)
			}
			t.yes = r.Body[1] == 1
			m.name(t)
		case t == nil:
			panic(fmt.Sprintf("cluster: node %d has a record of no transaction", m.self))
		case len(r.Body) == 1 && r.Body[0] == appliedRecord:
			t.told = true
		default:
			logs[r.Path] = append(logs[r.Path], parley.Record{Body: r.Body})
		}
	}
	m.records = len(s.Log)
	m.again(s, logs)
	m.sendOpen(s)
	m.beat(s)
}

// again starts the machines inside. The participant hears of what it had prepared first.
func (m *transactions) again(s *parley.Step, logs map[parley.Path][]parley.Record) {
	var all []*transaction
	for id := range m.of {
		all = append(all, m.of[id].list...)
	}
	for _, t := range all {
		if _, has := t.sheet.part(m.self); has && t.yes && !t.told {
			s.Deliver(t.sheet.members[0], parley.Msg{
				Kind: txPrepare, Value: uint64(t.path), Seq: 1, Body: t.sheet.only(m.self).encode(),
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

// add puts a transaction among the live ones.
func (m *transactions) add(t *transaction) {
	m.live[t.path] = t
	m.name(t)
	c := &m.of[coordinatorOf(t.path)]
	i := len(c.list)
	for i > 0 && c.list[i-1].path > t.path {
		i--
	}
	c.list = append(c.list, nil)
	copy(c.list[i+1:], c.list[i:])
	c.list[i] = t
	c.bytes += t.sheet.size()
	if coordinatorOf(t.path) == m.self {
		m.next = max(m.next, numberOf(t.path)+1)
	}
}

// drop takes those of a coordinator's transactions out that are over.
func (m *transactions) drop(id parley.ID, over func(t *transaction) bool) {
	c := &m.of[id]
	kept := c.list[:0]
	for _, t := range c.list {
		if !over(t) {
			kept = append(kept, t)
			continue
		}
		delete(m.live, t.path)
		if m.names[t.sheet.name] == t {
			delete(m.names, t.sheet.name)
		}
		c.bytes -= t.sheet.size()
	}
	clear(c.list[len(kept):])
	c.list = kept
}

// Request is from the service.
func (m *transactions) Request(s *parley.Step, q parley.Msg) {
	t := m.live[parley.Path(q.Value)]
	switch {
	case q.Kind == txCommit:
		m.commit(s, q)
	case t == nil: // it is over
	case q.Kind == txVoted:
		m.voted(s, t, q.Seq == 1, ending{by: m.self, text: string(q.Body)})
	case q.Kind == txApplied:
		m.applied(s, t)
	}
	m.compact(s)
}

// commit begins a transaction, unless it has begun or is over already.
func (m *transactions) commit(s *parley.Step, q parley.Msg) {
	of, ok := readSheet(q.Body, m.c.n)
	if !ok || of.members[0] != m.self {
		s.Refuse(m.self, "a transaction that cannot be read")
		return
	}
	refuse := func(why uint64) {
		s.Deliver(m.self, parley.Msg{Kind: txRefused, Seq: why, Body: []byte(of.name)})
	}
	if t := m.names[of.name]; t != nil {
		switch {
		case t.sheet.digest != of.digest:
			refuse(nameTaken)
		case t.outcome != problem.Undecided:
			s.Deliver(t.sheet.members[0], m.ended(t.path, t.sheet.name, t.outcome, t.why))
		case t.blocked:
			m.tellBlocked(s, t)
		}
		return
	}
	if e := m.past.named(of.name); e != nil {
		if e.digest != of.digest {
			refuse(nameTaken)
			return
		}
		s.Deliver(coordinatorOf(e.path), m.ended(e.path, e.name, e.outcome, e.why))
		return
	}
	own := &m.of[m.self]
	if len(own.list) >= 4*m.c.open {
		refuse(tooManyOpen)
		return
	}
	t := &transaction{path: txPath(m.self, m.next), sheet: of.only(m.self), inner: m.machine(of)}
	m.add(t)
	low := numberOf(own.list[0].path)
	for _, id := range of.members[1:] {
		m.send(s, id, t.path, parley.Msg{Kind: txBegin, Seq: 1, Value: low, Body: of.only(id).encode()})
	}
	m.within(s, t, func(inner parley.Machine) { inner.Start(s) })
	m.ask(s, t)
}

// ask asks the participant, or votes for a node that has no part.
func (m *transactions) ask(s *parley.Step, t *transaction) {
	if _, has := t.sheet.part(m.self); !has {
		m.voted(s, t, true, ending{})
		return
	}
	s.Deliver(t.sheet.members[0], parley.Msg{
		Kind: txPrepare, Value: uint64(t.path), Body: t.sheet.only(m.self).encode(),
	})
	wait := m.c.votes
	if coordinatorOf(t.path) != m.self {
		wait += m.c.delta
	}
	m.setTimer(s, t.path, wait)
}

// voted is the vote of this node. The first one counts.
func (m *transactions) voted(s *parley.Step, t *transaction, yes bool, why ending) {
	if t.ready {
		return
	}
	t.ready, t.yes = true, yes
	if c := coordinatorOf(t.path); !yes && t.outcome == problem.Undecided {
		if c == m.self {
			t.why = why
		} else {
			q := parley.Msg{Kind: txWhy, Seq: uint64(why.taken), Body: []byte(why.text)}
			if why.taken != free {
				q.Value = 1
			}
			m.send(s, c, t.path, q)
		}
	}
	m.give(s, t, false)
}

// give hands the vote to the machine inside. In two phases a participant that says yes and is
// not asked aborts before long: it has to be asked first, or to have waited.
func (m *transactions) give(s *parley.Step, t *transaction, waited bool) {
	held := m.c.protocol == TwoPhase && coordinatorOf(t.path) != m.self && t.yes && !t.asked && !waited
	if t.given || t.outcome != problem.Undecided || held || !t.ready && !waited {
		return
	}
	t.given = true
	m.stopTimer(s, t.path)
	vote := []byte("no")
	if t.ready && t.yes {
		vote = []byte("yes")
	}
	m.within(s, t, func(inner parley.Machine) {
		inner.Request(s, parley.Msg{Kind: parley.Propose, Body: vote})
	})
}

// within runs a clause of the machine inside, as of one of the members.
func (m *transactions) within(s *parley.Step, t *transaction, clause func(parley.Machine)) {
	self, n, path, host := s.Self, s.N, s.Path, s.Host
	m.mapped = mappedHost{Host: host, members: t.sheet.members}
	s.Self, s.N, s.Path, s.Host = t.sheet.place(m.self), len(t.sheet.members), 0, &m.mapped
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

// carry does what the machine inside asks for.
func (m *transactions) carry(s *parley.Step, t *transaction, e *parley.Effect) {
	switch e.Op {
	case parley.OpSend:
		// Who asks what became of a transaction first says what it is.
		if m.asks(e.Msg.Kind) {
			if t.begun || coordinatorOf(t.path) != m.self {
				m.sendTo(s, t, e.To, parley.Msg{Kind: txBegin, Body: t.sheet.only(parley.All).encode()})
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
		if !t.logged {
			t.logged = true
			head := []byte{sheetRecord, 0}
			if t.yes {
				head[1] = 1
			}
			m.append(s, t.path, append(head, t.sheet.encode()...))
		}
		m.append(s, t.path, e.Msg.Body)
	case parley.OpCompact: // all are compacted together
	case parley.OpSetTimer, parley.OpStopTimer:
		e.From, e.Path = m.self, t.path
		s.Effects = append(s.Effects, *e)
	default:
		panic(fmt.Sprintf("cluster: a transaction asks for effect %d", e.Op))
	}
}

// asks tells whether a kind is that of a message by which a machine inside begins to ask.
func (m *transactions) asks(k parley.Kind) bool {
	if m.c.protocol == Majority {
		return k == ballot.Prepare
	}
	return k == twophase.Ask
}

// sendTo sends to one of the members, or to all others, as the machine inside counts them.
func (m *transactions) sendTo(s *parley.Step, t *transaction, to parley.ID, q parley.Msg) {
	if to != parley.All {
		m.send(s, t.sheet.members[to], t.path, q)
		return
	}
	for _, id := range t.sheet.members {
		if id != m.self {
			m.send(s, id, t.path, q)
		}
	}
}

func (m *transactions) send(s *parley.Step, to parley.ID, path parley.Path, q parley.Msg) {
	s.Send(to, q)
	s.Effects[len(s.Effects)-1].Path = path
}

func (m *transactions) append(s *parley.Step, path parley.Path, record []byte) {
	s.Append(record)
	s.Effects[len(s.Effects)-1].Path = path
	m.records++
}

func (m *transactions) setTimer(s *parley.Step, path parley.Path, after parley.Tick) {
	s.SetTimer(voteTimer, after)
	s.Effects[len(s.Effects)-1].Path = path
}

func (m *transactions) stopTimer(s *parley.Step, path parley.Path) {
	s.StopTimer(voteTimer)
	s.Effects[len(s.Effects)-1].Path = path
}

// mappedHost tells who is meant where a machine inside speaks of members.
type mappedHost struct {
	parley.Host
	members []parley.ID
}

// Refused counts.
func (h *mappedHost) Refused(at, from parley.ID, why string) {
	h.Host.Refused(h.members[at], h.members[from], why)
}
