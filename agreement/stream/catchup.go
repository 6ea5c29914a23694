package stream

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"parley"
)

// nameCatchUp is how a process that rejoins learns which names are known after the last slot in
// which it takes no part: the base.
//
// It asks all others. Each answers when the base is over for it, with names and slots, without
// values. A process that is itself rejoining answers at once, with what it knew when it left. The
// rejoining process waits until n-1-m others have answered and all correct ones have had the time
// to, and takes what m+1 processes report, itself included. Vectors of slots after the base wait
// until then.
//
// m+1 processes report every known name: a name gets known only through vectors in which a correct
// process has a value; no correct process has one before it has caught up and n-1-m others report that
// they have; and with n > 3m, m of these are correct. If no process has the names, because all
// restarted at once, the list begins empty, and names that were decided before are free again.
type nameCatchUp struct {
	whole   bool // the process knows the names
	asked   bool // it has asked the others
	cut     bool // there were more names, which were dropped
	base    uint64
	since   parley.Tick
	retryAt parley.Tick // when it asks the processes again that have not answered

	replies     []nameListReply // by process
	heldVectors []slotVector
	askedBy     []uint64      // by process: the slot plus one after which it wants the names; 0: it has not asked
	replyAfter  []parley.Tick // by process: no reply to it before this time, because replies are long
}

type nameListReply struct {
	has, cut bool
	names    []nameOutcome
}

type slotVector struct {
	slot uint64
	body []byte
}

// listTimer is set while a process waits for replies.
const listTimer parley.Timer = 2

// The Seq of a reply.
const (
	listWhole = iota
	listCut   // there were older names
)

func newNameCatchUp(n int) nameCatchUp {
	return nameCatchUp{replies: make([]nameListReply, n), askedBy: make([]uint64, n), replyAfter: make([]parley.Tick, n)}
}

// rejoin does what is due when this process or another one rejoins.
func (m *vectorMachine) rejoin(s *parley.Step) {
	l := &m.catchUp
	if len(l.heldVectors) > 4*m.Window+4 {
		m.slots.Lose(s) // catching up takes too long
	}
	switch {
	case !m.slots.In() && (l.whole || l.asked || len(l.heldVectors) > 0):
		m.forgetNames()
	case m.slots.In() && !l.whole && !l.asked:
		l.asked, l.base, l.since, l.retryAt = true, m.slots.Base(), s.Now, s.Now
		clear(l.replies)
	}
	if m.slots.In() && !l.whole {
		m.collectNames(s)
	}
	for id, slot := range l.askedBy {
		if slot > 0 && (!l.whole || m.slots.Done() >= slot-1) && s.Now >= l.replyAfter[id] {
			l.askedBy[id], l.replyAfter[id] = 0, s.Now+m.slots.Age()
			m.sendNames(s, parley.ID(id), slot-1)
		}
	}
}

// forgetNames records that this process does not know the agreed value from now on. Requests stay pending,
// until the names of the others say that they were decided, or they are decided.
func (m *vectorMachine) forgetNames() {
	m.catchUp.whole, m.catchUp.asked, m.catchUp.heldVectors = false, false, nil
	m.slots.Whole(false)
}

func (m *vectorMachine) sendNames(s *parley.Step, to parley.ID, base uint64) {
	a := parley.Msg{Kind: namesReply, Value: base, Seq: listWhole}
	if m.catchUp.cut {
		a.Seq = listCut
	}
	for _, o := range m.known {
		a.Body = binary.AppendUvarint(a.Body, o.slot)
		a.Body = parley.AppendBytes(a.Body, o.name)
	}
	s.Send(to, a)
}

// readNames reads the body of a reply: at most keptNames names, the oldest first.
func readNames(b []byte) (names []nameOutcome, ok bool) {
	r := parley.Reader{Rest: b}
	for len(r.Rest) > 0 {
		o := nameOutcome{slot: r.Number(1 << 63), name: string(r.Bytes()), bare: true}
		k := len(names)
		if r.Bad || o.name == "" || len(o.name) > MaxName || k == keptNames || k > 0 && older(names[k-1], o) >= 0 {
			return nil, false
		}
		names = append(names, o)
	}
	return names, true
}

func older(a, b nameOutcome) int {
	return cmp.Or(cmp.Compare(a.slot, b.slot), strings.Compare(a.name, b.name))
}

func (m *vectorMachine) handleNames(s *parley.Step, from parley.ID, q parley.Msg) {
	l := &m.catchUp
	switch {
	case q.Kind == namesQuery && q.Origin == 0 && q.Seq == 0 && len(q.Body) == 0:
		if q.Value > m.slots.Opened()+uint64(m.Window) && l.whole {
			s.Refuse(from, "asks for the names of a slot past the window")
			return
		}
		l.askedBy[from] = min(q.Value, 1<<62) + 1
	case q.Kind == namesReply && q.Origin == 0 && q.Seq <= listCut && len(q.Body) <= keptNames*(MaxName+12):
		if l.whole || !l.asked || q.Value != l.base || l.replies[from].has {
			s.Refuse(from, "names that nobody asked for")
			return
		}
		names, ok := readNames(q.Body)
		if !ok {
			s.Refuse(from, "what is no list of names")
			return
		}
		l.replies[from] = nameListReply{true, q.Seq == listCut, names}
	default:
		s.Refuse(from, "no message of a stream")
	}
}

// collectNames asks for the names, and takes them when enough processes have answered.
func (m *vectorMachine) collectNames(s *parley.Step) {
	l := &m.catchUp
	answers := 0
	for i := range l.replies {
		if l.replies[i].has {
			answers++
		}
	}
	until := l.since + m.slots.Age() + m.when.Delta
	if answers >= m.N-1-m.M && s.Now >= until || answers == m.N-1 {
		m.adoptNames(s)
		return
	}
	if s.Now >= l.retryAt {
		for i := range l.replies {
			if id := parley.ID(i); id != m.self && !l.replies[i].has {
				s.Send(id, parley.Msg{Kind: namesQuery, Value: l.base})
			}
		}
		if l.retryAt = s.Now + m.when.Delta; s.Now > until {
			l.retryAt = s.Now + 10*m.when.Delta
		}
	}
	s.SetTimer(listTimer, l.retryAt-s.Now)
}

// adoptNames makes the list of the names that enough processes report.
func (m *vectorMachine) adoptNames(s *parley.Step) {
	l := &m.catchUp
	enough, cut := m.M+1, 0
	if m.N < 2*m.M+2 {
		enough = max(1, m.N-1-m.M)
	}
	type entry struct {
		name string
		slot uint64
	}
	said, own := make(map[entry]int), make(map[entry][]byte)
	for _, o := range m.known {
		own[entry{o.name, o.slot}] = o.values
		said[entry{o.name, o.slot}]++
	}
	for _, t := range l.replies {
		for _, o := range t.names {
			said[entry{o.name, o.slot}]++
		}
		if t.cut {
			cut++
		}
	}
	var known []nameOutcome
	// order: the result is sorted below
	for e, times := range said {
		if times >= enough && e.slot <= l.base {
			values := own[e]
			known = append(known, nameOutcome{e.name, e.slot, values, len(values) == 0})
		}
	}
	slices.SortFunc(known, older)
	if len(known) < rememberedNames && cut >= enough {
		m.slots.Lose(s) // names were dropped that must be known
		m.forgetNames()
		return
	}
	m.known = known[max(0, len(known)-keptNames):]
	held := l.heldVectors
	l.whole, l.asked, l.heldVectors, l.cut = true, false, nil, l.cut || cut >= enough
	clear(l.replies)
	m.slots.Whole(true)
	m.pending = slices.DeleteFunc(m.pending, func(p pendingName) bool {
		o := m.outcome(p.name)
		for _, number := range p.numbers {
			switch {
			case o == nil:
			case o.bare:
				s.Indicate(parley.Msg{Kind: Unanswered, Seq: o.slot, Value: number})
			default:
				m.answer(s, o, number)
			}
		}
		return o != nil
	})
	for _, v := range held {
		m.vector(s, v)
	}
}

func (l *nameCatchUp) state(v *parley.Vars) {
	v.Bool("whole", &l.whole)
	v.Bool("asked", &l.asked)
	v.Bool("cut", &l.cut)
	parley.Num(v, "base", &l.base)
	v.Time("since", &l.since)
	v.Time("again", &l.retryAt)
	parley.PerProcess(v, "reported", l.replies, func(_ parley.ID, t *nameListReply) {
		v.Bool("has", &t.has)
		v.Bool("cut", &t.cut)
		parley.Slice(v, "names", &t.names, func(_ int, o *nameOutcome) {
			visitText(v, "name", &o.name)
			parley.Num(v, "slot", &o.slot)
			o.bare = true
		})
	})
	parley.Slice(v, "held", &l.heldVectors, func(_ int, h *slotVector) {
		parley.Num(v, "slot", &h.slot)
		v.Bytes("vector", &h.body)
	})
	parley.PerProcess(v, "waiting", l.askedBy, func(_ parley.ID, slot *uint64) { parley.Num(v, "slot", slot) })
	parley.PerProcess(v, "next", l.replyAfter, func(_ parley.ID, t *parley.Tick) { v.Time("next reply", t) })
}
