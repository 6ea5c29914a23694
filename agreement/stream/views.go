package stream

import (
	"slices"

	"parley"
	"parley/agreement/tetra"
)

// The messages of a stream without rounds, besides those of package tetra. A message of tetra has the slot in Seq, and
// in Value its view and, in the last viewShift bits, its own Value.
const (
	// silence says that its sender says nothing in slots up to Seq.
	silence parley.Kind = tetra.Decided + 1 + iota
	// slotQuery asks for the last known slot, and slotReply answers. Seq: the slot. Value: 1 if the sender takes part.
	slotQuery
	slotReply
)

const (
	viewShift = 3
	mostSlot  = 1 << 50
	// recordsKept is the number of log records after which the log is compacted.
	recordsKept = 64
	// A slot is asked for so often if only processes that may be faulty speak in it.
	mostAsks = 3
	// doublings bounds how long a process waits between two attempts to leave a view.
	doublings = 6
)

// viewMachine is one process of a stream without rounds: each slot is an agreement of package tetra. It delivers and
// indicates what a sourceMachine does, but no evidence. Each process indicates Nothing for a slot that is decided on
// nothing.
//
// Which slots there are: the source begins slots in the order of their numbers, and may leave out numbers. It begins
// a slot only if each of its slots is decided that is Window/2 or more slots older. A process keeps the last Window
// slots, and listens in the next Window/2. A late process asks for the slots that it keeps and has missed. It does
// not decide the older slots.
//
// Restarts: before a process speaks in a slot, it makes a greater slot durable, its reserve. After a restart it says
// nothing in slots up to its reserve, because it could contradict what it said before. It announces this, so the
// source leaves out these slots as soon as it has none in flight. A process that has lost its disk asks the others
// for the slots in which it may have spoken.
type viewMachine struct {
	Config
	self parley.ID
	wait parley.Tick

	reserve uint64 // it speaks in slots up to this one
	saved   bool   // the reserve is durable
	records int    // log records since the last compaction

	quiet   uint64 // it says nothing in slots up to this one
	lost    bool   // it does not know that slot yet
	replies []slotAnswer

	newest uint64       // the last slot that the source has begun, as far as this process knows
	spoke  []uint64     // by process: the last slot in which it spoke
	silent []uint64     // by process: up to which slot it says nothing
	slots  []*viewSlot  // in the order of their numbers
	queue  []viewDemand // requests that are in no slot yet
}

type viewDemand struct {
	number uint64
	value  []byte
}

func newViewMachine(c Config, self parley.ID, wait parley.Tick) *viewMachine {
	return &viewMachine{
		Config: c, self: self, wait: wait,
		replies: make([]slotAnswer, c.N), spoke: make([]uint64, c.N), silent: make([]uint64, c.N),
	}
}

// valueMark begins every value in a slot, because for tetra an empty value means nothing.
const valueMark = 1

func marked(value []byte) []byte { return append([]byte{valueMark}, value...) }

// quorum returns the number of processes of which two sets share a correct process.
func (m *viewMachine) quorum() int { return (m.N+m.M)/2 + 1 }

// Request requests an agreement on a value. Only the source accepts it.
func (m *viewMachine) Request(s *parley.Step, q parley.Msg) {
	switch {
	case m.self != m.Source:
		s.Refuse(m.self, "request at a process that is not the source")
		return
	case len(m.queue) >= m.Window:
		s.Indicate(parley.Msg{Kind: Unanswered, Value: q.Value})
		return
	}
	m.queue = append(m.queue, viewDemand{q.Value, q.Body})
	m.feed(s)
}

// feed puts requests into slots.
func (m *viewMachine) feed(s *parley.Step) {
	for len(m.queue) > 0 && !m.lost {
		next := m.newest + 1
		open := slices.IndexFunc(m.slots, func(k *viewSlot) bool { return k.pending })
		if open < 0 {
			next = m.past(next)
		} else if next >= m.slots[open].number+m.behind() {
			return
		}
		one := m.queue[0]
		m.queue[0] = viewDemand{}
		if m.queue = m.queue[1:]; len(m.queue) == 0 {
			m.queue = nil
		}
		m.begun(s, next)
		k := m.slot(next)
		k.request, k.pending = one.number, true
		k.run(s, func(in *tetra.Instance) { in.Propose(s, marked(one.value)) })
		k.watch(s)
	}
}

// behind returns how many slots of the source may be in flight.
func (m *viewMachine) behind() uint64 { return uint64(max(1, m.Window/2)) }

func descending(a, b uint64) int {
	switch {
	case a > b:
		return -1
	case a < b:
		return 1
	}
	return 0
}

// Receive handles a message.
func (m *viewMachine) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	switch {
	case q.Kind >= parley.Local:
		return
	case q.Kind == 0 || q.Kind > slotReply || q.Seq > mostSlot:
		s.Refuse(from, "no message of a stream")
	case q.Kind <= tetra.Decided:
		m.hear(s, from, q)
	case q.Origin != 0 || len(q.Body) > 0 || q.Value > 1 || q.Value == 1 && q.Kind != slotReply:
		s.Refuse(from, "fields that are not used")
	case q.Kind == silence && m.self != m.Source:
		s.Refuse(from, "announcement to a process that is not the source")
	case q.Kind == silence:
		m.silent[from] = max(m.silent[from], q.Seq)
		m.giveUp(s)
	case q.Kind == slotQuery:
		reply := parley.Msg{Kind: slotReply, Seq: m.newest}
		if !m.lost {
			reply.Value = 1
		}
		s.Send(from, reply)
	case m.lost:
		m.replies[from] = slotAnswer{true, q.Value == 1, q.Seq}
		m.rejoin(s)
	}
	m.feed(s)
}

// hear handles a message of a slot.
func (m *viewMachine) hear(s *parley.Step, from parley.ID, q parley.Msg) {
	k := q.Seq
	q = unwrapped(q)
	first := q.Kind == tetra.Proposal && q.Seq == 0 && from == m.Source
	switch {
	case k == 0:
		s.Refuse(from, "no such slot")
		return
	case m.self == m.Source && k > m.newest:
		s.Refuse(from, "slot that the source has not begun")
		return
	case m.lost || m.self == m.Source && m.find(k) == nil: // the source has left out the slot, or it is old
		return
	}
	if !asks(q) {
		m.spoke[from] = max(m.spoke[from], k)
	}
	if first && k > m.newest {
		m.begun(s, k)
	}
	// One of m+1 processes is correct, and speaks only in slots that the source has begun.
	list := slices.Clone(m.spoke)
	slices.SortFunc(list, descending)
	if x := list[m.M]; x > m.newest && m.self != m.Source {
		m.begun(s, x)
	}
	switch {
	case k <= m.quiet:
		if first {
			m.announce(s)
		}
	case k > m.newest+m.behind():
		s.Refuse(from, "slot far ahead of those that are known")
	case k+uint64(m.Window) > m.newest:
		m.slot(k).receive(s, from, q)
	}
}

// begun notes that the source has begun a slot. It asks for the slots in between, which this process has missed.
func (m *viewMachine) begun(s *parley.Step, newest uint64) {
	before := m.newest
	m.newest = newest
	m.slots = slices.DeleteFunc(m.slots, func(k *viewSlot) bool {
		old := k.number+uint64(m.Window) <= newest
		if old {
			s.StopTimer(k.timer())
		}
		return old
	})
	first := before
	if newest > uint64(m.Window) {
		first = max(first, newest-uint64(m.Window))
	}
	for k := first + 1; k < newest && m.self != m.Source; k++ {
		if m.find(k) == nil {
			one := m.slot(k)
			one.run(s, func(in *tetra.Instance) { in.Ask(s) })
			one.watch(s)
		}
	}
}

// find returns a slot, or nil.
func (m *viewMachine) find(number uint64) *viewSlot {
	if at, found := m.place(number); found {
		return m.slots[at]
	}
	return nil
}

func (m *viewMachine) place(number uint64) (at int, found bool) {
	return slices.BinarySearchFunc(m.slots, number, func(k *viewSlot, x uint64) int { return descending(x, k.number) })
}

// slot returns a slot, and makes it if necessary.
func (m *viewMachine) slot(number uint64) *viewSlot {
	at, found := m.place(number)
	if !found {
		m.slots = slices.Insert(m.slots, at, m.newSlot(number))
	}
	return m.slots[at]
}

// Timeout handles the timers: of a slot, or of a process that locates itself.
func (m *viewMachine) Timeout(s *parley.Step, t parley.Timer) {
	if t == slotsTimer {
		if m.lost {
			m.locate(s)
		}
		return
	}
	for _, k := range m.slots {
		if k.timer() == t {
			k.expire(s)
		}
	}
	m.feed(s)
}

// Progress returns what a host may show: the last slot, the last slot before the first undecided one, and whether the
// process takes part in no slot.
func (m *viewMachine) Progress() (opened, done uint64, mute bool) {
	done = m.newest
	for _, k := range m.slots {
		if _, decided := k.in.Decision(); !decided && k.number <= done {
			done = k.number - 1
		}
	}
	return m.newest, done, m.lost
}

// State visits every variable.
func (m *viewMachine) State(v *parley.Vars) {
	v.Durable(func() {
		parley.Num(v, "reserve", &m.reserve)
		v.Bool("saved", &m.saved)
	})
	if v.Skips() {
		return
	}
	parley.Num(v, "records", &m.records)
	parley.Num(v, "quiet up to", &m.quiet)
	v.Bool("lost", &m.lost)
	parley.PerProcess(v, "answer of", m.replies, func(_ parley.ID, a *slotAnswer) {
		v.Bool("came", &a.came)
		v.Bool("in", &a.in)
		parley.Num(v, "slot", &a.slot)
	})
	parley.Num(v, "newest", &m.newest)
	parley.PerProcess(v, "spoke in", m.spoke, func(_ parley.ID, x *uint64) { parley.Num(v, "slot", x) })
	parley.PerProcess(v, "silent up to", m.silent, func(_ parley.ID, x *uint64) { parley.Num(v, "slot", x) })
	parley.Slice(v, "queue", &m.queue, func(_ int, one *viewDemand) {
		parley.Num(v, "number", &one.number)
		v.Bytes("value", &one.value)
	})
	parley.Slice(v, "slots", &m.slots, func(_ int, k **viewSlot) {
		number := uint64(0)
		if *k != nil {
			number = (*k).number
		}
		if parley.Num(v, "number", &number); v.Loading() {
			*k = m.newSlot(number)
		}
		(*k).state(v)
	})
}
