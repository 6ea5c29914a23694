package stream

import (
	"cmp"
	"maps"
	"slices"

	"parley"
	"parley/agreement/interactive"
)

// The limits of named values: name and value must fit into one value of an agreement.
const (
	MaxName     = 64
	MaxProposal = MaxValue - MaxName - 4
)

// VectorRequest returns a request to a process of a stream in which all are sources. The process puts its value into
// the vector of a name. It waits gather ticks for the values of others before it opens a slot for the agreement. The
// caller numbers its requests from 1, in Value.
func VectorRequest(name string, value []byte, gather parley.Tick) parley.Msg {
	return parley.Msg{Kind: parley.Propose, Seq: uint64(gather), Body: item{name, value}.append(nil)}
}

// Withdrawn is the kind of a Request that withdraws the request with the number in its Value.
const Withdrawn parley.Kind = parley.Local + 0x41

// RequestedValue reads a VectorRequest. Any other body is a value under the name "value".
func RequestedValue(m parley.Msg) (name string, value []byte) {
	one := requested(m)
	return one.name, one.value
}

func requested(m parley.Msg) item {
	if one, rest, ok := readItem(m.Body); ok && one.name != "" && len(rest) == 0 {
		return one
	}
	return item{"value", m.Body}
}

// AgreedVector reads the answer to a VectorRequest: the values of n processes, nil for a missing
// one.
func AgreedVector(m parley.Msg, n int) (values [][]byte, ok bool) {
	r := parley.Reader{Rest: m.Body}
	for range n {
		values = append(values, optional(&r))
	}
	if !r.Done() {
		return nil, false
	}
	return values, true
}

// vectorMachine is one process of a stream in which all are sources: each slot is interactive
// consistency. In a slot a process proposes all its requests, by name, and says for
// each name whether it is ripe: whether a request has waited for its time to gather. A name gets
// its vector in the first slot in which more than M processes say that it is ripe. So the vector
// is a function of the agreed value, and faulty processes alone cannot use up a name.
//
// A process opens a slot when a name is ripe, and again, at growing intervals, until that name
// is decided.
//
// Which names are known is a function of all slots, so a process that has missed a slot has
// to catch up: see nameCatchUp.
type vectorMachine struct {
	streamCore

	pending []pendingName // in the order of the requests
	known   []nameOutcome // the oldest first
	catchUp nameCatchUp
}

// pendingName is a name that is requested here and not decided.
type pendingName struct {
	item
	numbers []uint64 // of the requests
	said    uint64   // the last slot in which it was proposed
	ripe    parley.Tick
	call    parley.Tick // when this process opens a slot
	wait    parley.Tick // how long it then waits before it opens another
}

type nameOutcome struct {
	name   string
	slot   uint64
	values []byte
	bare   bool // learned from others, without the values
}

// rememberedNames is how many names are known. It is the same at all processes, because it
// decides whether a name is free. As many more are kept for processes that rejoin, which need the
// names as they were some slots ago.
const (
	rememberedNames = 1024
	keptNames       = 2 * rememberedNames
)

// namesTimer is set for when this process opens the next slot.
const namesTimer parley.Timer = 1

func newVectorMachine(core streamCore) *vectorMachine {
	m := &vectorMachine{streamCore: core}
	m.open(m)
	m.catchUp = newNameCatchUp(m.N)
	return m
}

// Start finds out, after a restart, which slots have begun and which names are known.
func (m *vectorMachine) Start(s *parley.Step) {
	m.catchUp.whole = !s.Restart
	m.slots.Whole(!s.Restart)
	m.slots.Start(s, m.DiskIntact)
}

// Request handles a VectorRequest, or a Withdrawn.
func (m *vectorMachine) Request(s *parley.Step, q parley.Msg) {
	if q.Kind == Withdrawn {
		for i := range m.pending {
			of := &m.pending[i].numbers
			*of = slices.DeleteFunc(*of, func(number uint64) bool { return number == q.Value })
		}
		m.pending = slices.DeleteFunc(m.pending, func(p pendingName) bool { return len(p.numbers) == 0 })
		return
	}
	one := requested(q)
	known, i := m.outcome(one.name), 0
	if known == nil {
		i = slices.IndexFunc(m.pending, func(p pendingName) bool { return p.name == one.name })
	}
	wait := parley.Tick(q.Seq)
	switch {
	case known != nil && known.bare:
		s.Indicate(parley.Msg{Kind: Unanswered, Seq: known.slot, Value: q.Value})
		return
	case known != nil:
		m.answer(s, known, q.Value)
		return
	case i >= 0:
		m.pending[i].numbers = append(m.pending[i].numbers, q.Value)
	default:
		m.pending = append(m.pending, pendingName{
			item: one, numbers: []uint64{q.Value}, ripe: s.Now + wait, call: s.Now + wait, wait: max(wait, m.when.Delta),
		})
	}
	m.after(s)
}

func (m *vectorMachine) outcome(name string) *nameOutcome {
	for i := max(0, len(m.known)-rememberedNames); i < len(m.known); i++ {
		if m.known[i].name == name {
			return &m.known[i]
		}
	}
	return nil
}

func (m *vectorMachine) answer(s *parley.Step, o *nameOutcome, number uint64) {
	s.Deliver(m.self, parley.Msg{Kind: parley.Decide, Seq: o.slot, Value: number, Body: o.values})
}

func (m *vectorMachine) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	switch {
	case q.Kind >= parley.Local:
		return
	case q.Kind == positionQuery || q.Kind == positionReply:
		m.slots.HandlePosition(s, from, q)
	case q.Kind == namesQuery || q.Kind == namesReply:
		m.handleNames(s, from, q)
	case len(q.Body) > m.FrameLimit(m.N):
		s.Refuse(from, "frame over the limit of the stream")
		return
	default:
		m.slots.Receive(s, from, q)
	}
	m.after(s)
}

func (m *vectorMachine) Timeout(s *parley.Step, t parley.Timer) {
	if t == slotsTimer {
		m.slots.Timeout(s)
	}
	m.after(s)
}

// maxCallInterval is the longest time, in ticks, between two slots that this process opens because of one
// name: 2 s in a cluster.
const maxCallInterval parley.Tick = 2e9

// after opens a slot if it is time, and sets the timer.
func (m *vectorMachine) after(s *parley.Step) {
	m.rejoin(s)
	if len(m.pending) > 0 {
		m.slots.Want(s)
	}
	if !m.slots.Settled() {
		return
	}
	call, next := false, parley.Tick(0)
	for i := range m.pending {
		p := &m.pending[i]
		if p.call <= s.Now {
			call = true
			p.call = s.Now + p.wait
			p.wait = min(2*p.wait, max(maxCallInterval, 4*m.when.Delta))
		}
		if next == 0 || p.call < next {
			next = p.call
		}
	}
	if next > 0 {
		s.SetTimer(namesTimer, next-s.Now)
	}
	if call {
		m.slots.OpenSlot(s, 0)
	}
}

// ProposalFor proposes all pending requests that fit. The one proposed longest ago comes first, so
// that a name that no other process requests does not keep others out.
func (m *vectorMachine) ProposalFor(s *parley.Step, slot uint64) (parley.Msg, bool) {
	if len(m.pending) == 0 || !m.slots.Speaks() {
		return parley.Msg{}, false
	}
	unripe := func(p *pendingName) int {
		if p.ripe <= s.Now {
			return 0
		}
		return 1
	}
	order := make([]*pendingName, len(m.pending))
	for i := range m.pending {
		order[i] = &m.pending[i]
	}
	slices.SortStableFunc(order, func(a, b *pendingName) int {
		return cmp.Or(cmp.Compare(a.said, b.said), cmp.Compare(unripe(a), unripe(b)))
	})
	var entry []byte
	for _, p := range order {
		flag := byte(1 - unripe(p))
		if more := p.item.append(append(slices.Clip(entry), flag)); len(more) <= m.Limit() {
			entry, p.said = more, slot
		}
	}
	return parley.Msg{Kind: parley.Propose, Body: entry}, true
}

// SlotDone handles the vector of a slot.
func (m *vectorMachine) SlotDone(s *parley.Step, slot uint64, delivered []parley.Effect) {
	for _, e := range delivered {
		if e.Msg.Kind != parley.Decide {
			continue
		}
		if !m.catchUp.whole {
			m.catchUp.heldVectors = append(m.catchUp.heldVectors, slotVector{slot, e.Msg.Body}) // until it has caught up
			continue
		}
		m.vector(s, slotVector{slot, e.Msg.Body})
	}
}

// nameEntries is what the vector of a slot has under one name.
type nameEntries struct {
	ripe   int
	values [][]byte
}

// vector decides the names that more than M entries of a slot say are ripe.
func (m *vectorMachine) vector(s *parley.Step, v slotVector) {
	entries, err := interactive.DecodeVector(v.body)
	if err != nil {
		panic(err) // this process wrote it
	}
	all := make(map[string]*nameEntries)
	for id, entry := range entries {
		for _, one := range readEntry(entry) {
			of := all[one.name]
			if of == nil {
				of = &nameEntries{values: make([][]byte, m.N)}
				all[one.name] = of
			}
			if of.values[id] != nil {
				continue // a second value of the same process
			}
			of.values[id] = one.value
			if one.ripe {
				of.ripe++
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name].ripe > m.M && m.outcome(name) == nil {
			m.decide(s, &nameOutcome{name: name, slot: v.slot, values: appendValues(nil, all[name].values)})
		}
	}
}

func (m *vectorMachine) decide(s *parley.Step, o *nameOutcome) {
	if len(m.known) == keptNames {
		m.known = slices.Delete(m.known, 0, 1)
		m.catchUp.cut = true
	}
	if old := len(m.known) - rememberedNames; old >= 0 {
		m.known[old].values = nil // only the last rememberedNames keep their values
	}
	m.known = append(m.known, *o)
	i := slices.IndexFunc(m.pending, func(p pendingName) bool { return p.name == o.name })
	if i < 0 {
		return
	}
	for _, number := range m.pending[i].numbers {
		m.answer(s, o, number)
	}
	m.pending = slices.Delete(m.pending, i, i+1)
}

func (m *vectorMachine) State(v *parley.Vars) {
	m.catchUp.state(v)
	parley.Slice(v, "pending", &m.pending, func(_ int, p *pendingName) {
		visitText(v, "name", &p.name)
		v.Bytes("value", &p.value)
		parley.Slice(v, "numbers", &p.numbers, func(_ int, number *uint64) { parley.Num(v, "number", number) })
		parley.Num(v, "said", &p.said)
		v.Time("ripe", &p.ripe)
		v.Time("call", &p.call)
		parley.Num(v, "wait", &p.wait)
	})
	parley.Slice(v, "known", &m.known, func(_ int, o *nameOutcome) {
		visitText(v, "name", &o.name)
		parley.Num(v, "slot", &o.slot)
		v.Bytes("values", &o.values)
		v.Bool("bare", &o.bare)
	})
	v.Machine("line", m.slots)
}

func visitText(v *parley.Vars, name string, text *string) {
	b := []byte(*text)
	if v.Bytes(name, &b); v.Loading() {
		*text = string(b)
	}
}
