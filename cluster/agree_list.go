package cluster

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"parley"
	"parley/agreement/interactive"
)

// list is how a process of names that has come back gets the list of names that are known,
// as after the last slot of those it takes no part in: the base.
//
// It asks all others, each of which answers when that slot is over for it, with names and
// slots; values are not told. It waits until n-1-m have answered and all correct ones have
// had the time to, and takes what m+1 say, itself included. Of who is out itself the answer
// comes at once: what it knew when it went out. Vectors of slots behind the base wait
// until then.
//
// All that is true is said by m+1: nothing of its own is said by a correct process, so that
// no name gets known, unless it has the list and n-1-m others say that they have theirs, of
// whom, with n > 3m, m are correct. If nobody has one, for all have come back from a crash
// at once, the list begins anew, and names are free that were agreed on before.
type list struct {
	whole bool // it is here
	asked bool // all have been asked
	cut   bool // there were more names, which were let go
	base  uint64
	since parley.Tick
	again parley.Tick // when those are asked again who have not answered

	told    []listed // by process
	held    []agreedOn
	waiting []uint64      // by process: that wants the list as after this slot, less one; 0: none
	next    []parley.Tick // by process: not before then is it told again, for that is long
}

// listed is what one process says.
type listed struct {
	has, cut bool
	names    []outcome
}

// agreedOn is what was agreed on in a slot.
type agreedOn struct {
	slot uint64
	body []byte
}

// listTimer is for who waits for a list.
const listTimer parley.Timer = 2

// The Seq of an answer.
const (
	listWhole = iota
	listCut   // there were older ones
)

func newList(n int) list {
	return list{told: make([]listed, n), waiting: make([]uint64, n), next: make([]parley.Tick, n)}
}

// returns does what is due of a return, and of those of others.
func (m *names) returns(s *parley.Step) {
	l := &m.list
	if len(l.held) > 4*m.window+4 {
		m.line.Lose(s) // it takes too long
	}
	switch {
	case !m.line.In() && (l.whole || l.asked || len(l.held) > 0):
		m.leave()
	case m.line.In() && !l.whole && !l.asked:
		l.asked, l.base, l.since, l.again = true, m.line.Base(), s.Now, s.Now
		clear(l.told)
	}
	if m.line.In() && !l.whole {
		m.gather(s)
	}
	for id, slot := range l.waiting {
		if slot > 0 && (!l.whole || m.line.Done() >= slot-1) && s.Now >= l.next[id] {
			l.waiting[id], l.next[id] = 0, s.Now+m.line.Age()
			m.tellList(s, parley.ID(id), slot-1)
		}
	}
}

// leave is for who has lost touch: it cannot know what was agreed on meanwhile. What is
// pending stays so, until the list says that it was agreed on, or it is.
func (m *names) leave() {
	m.list.whole, m.list.asked, m.list.held = false, false, nil
	m.line.Whole(false)
}

// tellList answers.
func (m *names) tellList(s *parley.Step, to parley.ID, base uint64) {
	a := parley.Msg{Kind: listTold, Value: base, Seq: listWhole}
	if m.list.cut {
		a.Seq = listCut
	}
	for _, o := range m.known {
		a.Body = binary.AppendUvarint(a.Body, o.slot)
		a.Body = append(binary.AppendUvarint(a.Body, uint64(len(o.name))), o.name...)
	}
	s.Send(to, a)
}

// readNames reads what tellList wrote: no more than is kept, the oldest first.
func readNames(b []byte) (names []outcome, ok bool) {
	for len(b) > 0 {
		slot, rest, err := parley.ReadUvarint(b, 1<<63)
		if err != nil {
			return nil, false
		}
		size, rest, err := parley.ReadUvarint(rest, MaxName)
		if err != nil || size == 0 || size > uint64(len(rest)) || len(names) == keptNames {
			return nil, false
		}
		o := outcome{name: string(rest[:size]), slot: slot, bare: true}
		if k := len(names); k > 0 && older(names[k-1], o) >= 0 {
			return nil, false
		}
		names, b = append(names, o), rest[size:]
	}
	return names, true
}

// older is the order in which names get known.
func older(a, b outcome) int {
	return cmp.Or(cmp.Compare(a.slot, b.slot), strings.Compare(a.name, b.name))
}

// hear takes in a question for the list, or an answer.
func (m *names) hear(s *parley.Step, from parley.ID, q parley.Msg) {
	l := &m.list
	switch {
	case q.Kind == listWanted && q.Origin == 0 && q.Seq == 0 && len(q.Body) == 0:
		if q.Value > m.line.Opened()+uint64(m.window) && l.whole {
			s.Refuse(from, "asks for the names of a slot past the window")
			return
		}
		l.waiting[from] = min(q.Value, 1<<62) + 1
	case q.Kind == listTold && q.Origin == 0 && q.Seq <= listCut && len(q.Body) <= keptNames*(MaxName+12):
		if l.whole || !l.asked || q.Value != l.base || l.told[from].has {
			s.Refuse(from, "names that nobody asked for")
			return
		}
		names, ok := readNames(q.Body)
		if !ok {
			s.Refuse(from, "what is no list of names")
			return
		}
		l.told[from] = listed{true, q.Seq == listCut, names}
	default:
		s.Refuse(from, "no message of a stream")
	}
}

// gather asks for the list, and takes it when enough have answered.
func (m *names) gather(s *parley.Step) {
	l := &m.list
	answers := 0
	for i := range l.told {
		if l.told[i].has {
			answers++
		}
	}
	until := l.since + m.line.Age() + m.when.Delta
	if answers >= m.n-1-m.t.m && s.Now >= until || answers == m.n-1 {
		m.compose(s)
		return
	}
	if s.Now >= l.again {
		for i := range l.told {
			if id := parley.ID(i); id != m.self && !l.told[i].has {
				s.Send(id, parley.Msg{Kind: listWanted, Value: l.base})
			}
		}
		if l.again = s.Now + m.when.Delta; s.Now > until {
			l.again = s.Now + 10*m.when.Delta
		}
	}
	s.SetTimer(listTimer, l.again-s.Now)
}

// compose makes the list of what enough say.
func (m *names) compose(s *parley.Step) {
	l := &m.list
	enough, cut := m.t.m+1, 0
	if m.n < 2*m.t.m+2 {
		enough = max(1, m.n-1-m.t.m)
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
	for _, t := range l.told {
		for _, o := range t.names {
			said[entry{o.name, o.slot}]++
		}
		if t.cut {
			cut++
		}
	}
	var known []outcome
	for e, times := range said {
		if times >= enough && e.slot <= l.base {
			values := own[e]
			known = append(known, outcome{e.name, e.slot, values, len(values) == 0})
		}
	}
	slices.SortFunc(known, older)
	if len(known) < rememberedNames && cut >= enough {
		m.line.Lose(s) // more has been let go than may be
		m.leave()
		return
	}
	m.known = known[max(0, len(known)-keptNames):]
	held := l.held
	l.whole, l.asked, l.held, l.cut = true, false, nil, l.cut || cut >= enough
	clear(l.told)
	m.line.Whole(true)
	m.pending = slices.DeleteFunc(m.pending, func(p pending) bool {
		o := m.outcome(p.name)
		for _, number := range p.numbers {
			switch {
			case o == nil:
			case o.bare:
				s.Indicate(parley.Msg{Kind: unanswered, Seq: o.slot, Value: number})
			default:
				m.answer(s, o, number)
			}
		}
		return o != nil
	})
	for _, v := range held {
		entries, err := interactive.DecodeVector(v.body)
		if err != nil {
			panic(err) // it was written by this process
		}
		m.vector(s, v.slot, entries)
	}
}

func (l *list) state(v *parley.Vars) {
	v.Bool("whole", &l.whole)
	v.Bool("asked", &l.asked)
	v.Bool("cut", &l.cut)
	parley.Num(v, "base", &l.base)
	v.Time("since", &l.since)
	v.Time("again", &l.again)
	parley.PerProcess(v, "told", l.told, func(_ parley.ID, t *listed) {
		v.Bool("has", &t.has)
		v.Bool("cut", &t.cut)
		parley.Slice(v, "names", &t.names, func(_ int, o *outcome) {
			visitText(v, "name", &o.name)
			parley.Num(v, "slot", &o.slot)
			o.bare = true
		})
	})
	parley.Slice(v, "held", &l.held, func(_ int, h *agreedOn) {
		parley.Num(v, "slot", &h.slot)
		v.Bytes("vector", &h.body)
	})
	parley.PerProcess(v, "waiting", l.waiting, func(_ parley.ID, slot *uint64) { parley.Num(v, "slot", slot) })
	parley.PerProcess(v, "next", l.next, func(_ parley.ID, t *parley.Tick) { v.Time("told again", t) })
}
