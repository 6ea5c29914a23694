package mux

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"

	"parley"
)

// numberBits is how many bits of a path name an instance.
const numberBits = 32

// New runs many instances of an asynchronous protocol, each made when a Request
// or a message first speaks of it. An instance is a number of 32 bits: the Seq of
// a Request to it, which it sees with Seq 0, and the Seq of what it delivers.
//
// There are at most limit instances at a time; what would make one more is refused
// and counted. None is ever removed, so whoever may open instances may use them
// up: against liars the layer above names those that are due. Indications go to
// all instances, and an instance made later is told the last one of each kind
// about each process first. Those of one kind in a row, which a layer beneath may
// give in any order, it is told in the order of the processes.
//
// What an instance Broadcasts comes back to it, for its number travels along. With
// a Request in the words of the layer beneath no number goes down, and none comes
// back with the answer: an instance that makes one panics, and what the layer
// beneath delivers in its own words is refused.
//
// A process that comes back after a crash has the instances that its log or its
// durable state speaks of. Nobody knows which others it had, so that all that it
// makes from then on start with Restart set, with no records.
//
// Synchronous protocols are not made on demand: an instance that begins with its
// first message begins too late. They begin at times known to all.
func New(p parley.Protocol, limit int) parley.Protocol {
	if p.Timing != parley.Asynchronous || limit < 1 {
		panic(fmt.Sprintf("mux: %d instances of %s, which is %s", limit, p.Name, p.Timing))
	}
	d := demand{p: p, limit: limit}
	out := p
	out.Name = "many-" + p.Name
	out.Title = fmt.Sprintf("at most %d instances of: %s", limit, p.Title)
	out.New = func(self parley.ID) parley.Machine { return &instances{demand: d, self: self} }
	out.Properties = nil
	for _, one := range p.Properties {
		out.Properties = append(out.Properties, ofEach(one))
	}
	out.Explain, out.Size, out.Lies = d.explain, d.size, d.lies
	out.Overhears = p.Lies != nil // lies finds there which instances there are
	if p.Rename != nil {
		out.Rename = d.rename
	}
	// These are about a run with one instance, or look into one.
	out.Cost, out.Memory, out.Tree, out.Flags = nil, nil, nil, nil
	return out
}

// demand is what is common to all processes.
type demand struct {
	p     parley.Protocol
	limit int
}

// instances is one process: its part in every instance.
type instances struct {
	demand
	self parley.ID

	again bool       // the process has come back after a crash
	live  []instance // in order of their numbers
	told  []news     // the indications that an instance to come must know, oldest first
}

type instance struct {
	number  uint32
	machine parley.Machine
}

// Start makes the instances that there are records of, and starts all of them,
// each with its own records.
func (m *instances) Start(s *parley.Step) {
	if !s.Restart {
		return
	}
	m.again = true
	log := s.Log
	for _, r := range log {
		number := uint32(r.Path)
		if i, has := m.find(number); !has {
			m.live = slices.Insert(m.live, i, instance{number, m.p.New(m.self)})
		}
	}
	for i := range m.live {
		s.Log = parley.LogOf(log, numberBits, parley.Path(m.live[i].number))
		m.within(s, i, 0, func(one parley.Machine) { one.Start(s) })
	}
	s.Log = log
}

// Request names its instance by Seq.
func (m *instances) Request(s *parley.Step, q parley.Msg) {
	if q.Seq > math.MaxUint32 {
		s.Refuse(s.Self, "number of an instance too large")
		return
	}
	if i, ok := m.open(s, s.Self, uint32(q.Seq)); ok {
		q.Seq = 0
		m.within(s, i, 0, func(one parley.Machine) { one.Request(s, q) })
	}
}

// Receive is for the instance that the path leads to; an indication is for all.
func (m *instances) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	if q.Kind >= parley.Indication {
		m.note(q)
		for i := range m.live {
			m.within(s, i, 0, func(one parley.Machine) { one.Receive(s, from, q) })
		}
		return
	}
	if q.Kind >= parley.Local {
		s.Refuse(from, "answer to no instance")
		return
	}
	number := uint32(s.Pop(numberBits))
	if i, ok := m.open(s, from, number); ok {
		m.within(s, i, s.Path, func(one parley.Machine) { one.Receive(s, from, q) })
	}
}

// Timeout is for the instance that set the timer. A faulty process may see one of
// an instance that its other half has.
func (m *instances) Timeout(s *parley.Step, t parley.Timer) {
	if i, has := m.find(uint32(s.Pop(numberBits))); has {
		m.within(s, i, s.Path, func(one parley.Machine) { one.Timeout(s, t) })
	}
}

// find returns the place of an instance in the list, or where it would be.
func (m *instances) find(number uint32) (int, bool) {
	return slices.BinarySearchFunc(m.live, number, func(one instance, number uint32) int {
		return cmp.Compare(one.number, number)
	})
}

// open returns the place of an instance, which it makes if there is room.
func (m *instances) open(s *parley.Step, from parley.ID, number uint32) (int, bool) {
	i, has := m.find(number)
	if has {
		return i, true
	}
	if len(m.live) >= m.limit {
		s.Refuse(from, "more instances than there is room for")
		return 0, false
	}
	m.live = slices.Insert(m.live, i, instance{number, m.p.New(m.self)})
	restart, log, carried := s.Restart, s.Log, s.Carried
	s.Restart, s.Log, s.Carried = m.again, nil, false
	m.within(s, i, 0, func(one parley.Machine) { one.Start(s) })
	for _, row := range m.told {
		for _, q := range row.about {
			if q.Kind != 0 {
				m.within(s, i, 0, func(one parley.Machine) { one.Receive(s, m.self, q) })
			}
		}
	}
	s.Restart, s.Log, s.Carried = restart, log, carried
	return i, true
}

// within runs a clause of one instance and marks what it asks for. What it asks of
// the layer beneath in that layer's words would be answered to nobody.
func (m *instances) within(s *parley.Step, i int, path parley.Path, clause func(parley.Machine)) {
	mark, outer, one := s.Mark(), s.Path, m.live[i]
	s.Path = path
	clause(one.machine)
	for k := range s.Effects[mark:] {
		switch e := &s.Effects[mark+k]; e.Op {
		case parley.OpDeliver:
			e.Msg.Seq = uint64(one.number)
		case parley.OpRequest:
			panic(fmt.Sprintf("mux: instance %d of %s asks the layer beneath in its own words, and the answer "+
				"cannot be brought back", one.number, m.p.Name))
		}
	}
	s.Lower(mark, numberBits, parley.Path(one.number))
	s.Path = outer
}

// State visits the numbers apart from the instances: which there are is durable
// as soon as any variable of theirs is.
func (m *instances) State(v *parley.Vars) {
	v.Bool("again", &m.again)
	parley.Slice(v, "told", &m.told, func(_ int, row *news) { row.state(v, m.p.N) })
	v.Durable(func() {
		parley.Slice(v, "live", &m.live, func(_ int, one *instance) { parley.Num(v, "number", &one.number) })
	})
	for i := range m.live {
		if m.live[i].machine == nil {
			m.live[i].machine = m.p.New(m.self)
		}
		v.Inner("#"+strconv.FormatUint(uint64(m.live[i].number), 10), m.live[i].machine, m.p.Rename)
	}
}

func (d demand) explain(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if d.p.Explain == nil {
			return
		}
		number := uint32(e.Path)
		e.Path >>= numberBits
		for row := range d.p.Explain(e, m, name) {
			if !yield(fmt.Sprintf("#%d: %s", number, row)) {
				return
			}
		}
	}
}

func (d demand) size(e parley.Env, m parley.Msg) parley.Traffic {
	if d.p.Size == nil {
		return parley.Traffic{}
	}
	e.Path >>= numberBits
	return d.p.Size(e, m)
}

func (d demand) rename(e parley.Env, m parley.Msg, perm []parley.ID) parley.Msg {
	e.Path >>= numberBits
	return d.p.Rename(e, m, perm)
}

// lies asks for every instance that the turn speaks of.
func (d demand) lies(s *parley.Step, t *parley.Turn) []parley.Sent {
	if d.p.Lies == nil {
		return t.Honest
	}
	var numbers []uint32
	for _, sent := range t.Honest {
		numbers = append(numbers, uint32(sent.Path))
	}
	for got := range t.Seen {
		numbers = append(numbers, uint32(got.Path))
	}
	slices.Sort(numbers)
	var out []parley.Sent
	for _, number := range slices.Compact(numbers) {
		said := d.p.Lies(s, t.Child(numberBits, parley.Path(number)))
		out = append(out, parley.Lift(slices.Clone(said), numberBits, parley.Path(number))...)
	}
	return out
}

// ofEach is a property of every instance.
func ofEach(p parley.Property) parley.Property {
	check, vacuous := p.Check, p.Vacuous
	p.Says = "in every instance: " + p.Says
	p.Check = func(h *parley.History) error {
		for number, only := range each(h) {
			if err := check(only); err != nil {
				return fmt.Errorf("instance %d: %w", number, err)
			}
		}
		return nil
	}
	if vacuous != nil {
		p.Vacuous = func(h *parley.History) string {
			why := "there is no instance"
			for _, only := range each(h) {
				if why = vacuous(only); why == "" {
					break
				}
			}
			return why
		}
	}
	return p
}

// each goes through the instances of a history, by number, as each sees it.
func each(h *parley.History) iter.Seq2[uint64, *parley.History] {
	var numbers []uint64
	for _, list := range [][]parley.Happening{h.Requests, h.Deliveries} {
		for _, one := range list {
			numbers = append(numbers, one.Msg.Seq)
		}
	}
	slices.Sort(numbers)
	return func(yield func(uint64, *parley.History) bool) {
		for _, number := range slices.Compact(numbers) {
			only := *h
			only.Requests, only.Deliveries = of(h.Requests, number), of(h.Deliveries, number)
			if !yield(number, &only) {
				return
			}
		}
	}
}

// of returns what happened in one instance, as the instance sees it.
func of(all []parley.Happening, number uint64) []parley.Happening {
	var out []parley.Happening
	for _, one := range all {
		if one.Msg.Seq == number {
			one.Msg.Seq = 0
			out = append(out, one)
		}
	}
	return out
}
