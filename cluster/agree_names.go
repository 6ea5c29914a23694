package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"parley"
	"parley/agreement/consensus"
	"parley/agreement/interactive"
	"parley/lockstep"
)

// Proposal hands in this node's value for an agreement of all nodes on the vector of
// their values. Nodes find each other by the name; Algorithm and M must be alike.
type Proposal struct {
	Name  string // at most MaxName bytes
	Value []byte // at most MaxProposal bytes
	// Algorithm and M as in a Question. For m > 2 it must be PhaseKing or SM.
	Algorithm Algorithm
	M         int
	// Gather is how long this node waits for the others' values before it asks for the
	// agreement to begin; by default 50 ms.
	Gather time.Duration
}

// The limits of proposals: name and value have to go into one value of an agreement.
const (
	MaxName     = 64
	MaxProposal = MaxValue - MaxName - 4
)

// Vector is what all correct nodes agree on under one name.
type Vector struct {
	Name string
	Slot uint64 // in which it was agreed on
	// Values are those of all nodes, by their places in Config.Members; nil is that of a
	// node that had handed in none. The caller may do with them what it likes.
	Values [][]byte
}

// Propose is interactive consistency: all correct nodes that ask under one name get the
// same vector, in which the value of every correct node that was in time with it stands
// for that node; unless what that node asks for at a time is more than one value has room
// for, and then it takes turns.
//
// An agreement begins when m+1 nodes have asked for it and waited, each its own time to
// gather: then one of them is correct, and liars alone cannot use up a name. In time is
// who asks, less one message delay, before the first correct node has waited. Who asks
// later gets the vector without its value, as long as it is remembered: that is for 1024
// more names of the same algorithm and m, unless more than n-m-1 end at once: who comes back learns
// the names from the others, and not the values, so that it gets ErrAbstained for those that
// were agreed on without it.
//
// If the context ends before, this node takes its value back; it may be in the vector all
// the same: the error is ErrUnknown then, and to ask again under the name tells. Fewer than
// m+1 nodes that ask wait until their contexts end.
func (n *Node) Propose(ctx context.Context, p Proposal) (Vector, error) {
	return n.propose(ctx, p, false)
}

// propose is Propose, with voting for a vector by which correct nodes are to outvote liars.
func (n *Node) propose(ctx context.Context, p Proposal, voting bool) (Vector, error) {
	t := stream{algorithm: p.Algorithm, m: p.M, source: everybody}
	if t.m == 0 {
		t.m = t.algorithm.Most(len(n.c.Members))
	}
	v := Vector{Name: p.Name}
	switch {
	case p.Name == "" || len(p.Name) > MaxName:
		return v, fmt.Errorf("%w: a name of %d bytes: allowed are 1 to %d", ErrRefused, len(p.Name), MaxName)
	case len(p.Value) > MaxProposal:
		return v, fmt.Errorf("%w: a proposal of %d bytes: at most %d", ErrTooLarge, len(p.Value), MaxProposal)
	case p.Gather < 0:
		return v, fmt.Errorf("%w: a gathering time of %v", ErrRefused, p.Gather)
	case p.Gather == 0:
		p.Gather = gather
	}
	o, err := n.ready(t)
	switch {
	case err != nil:
		return v, err
	case voting && len(n.c.Members) <= 2*t.m:
		return v, fmt.Errorf("%w: m = %d of %d nodes can outvote the others: consensus needs n > 2m",
			ErrRefused, t.m, len(n.c.Members))
	}
	a, err := o.ask(ctx, parley.Msg{
		Kind: parley.Propose, Seq: uint64(p.Gather), Body: item{p.Name, p.Value}.append(nil),
	})
	if err != nil {
		return v, fmt.Errorf("cluster: no vector of %q, for which %d nodes must ask: %w", p.Name, t.m+1, err)
	}
	v.Slot, v.Values = a.slot, readValues(slices.Clone(a.value), len(n.c.Members))
	return v, nil
}

// gather is how long a node waits for others' values unless it is told otherwise.
const gather = 50 * time.Millisecond

// Consensus is Propose and then a rule of the vector: [consensus.Majority] if it has no
// function, or one of the others, or the caller's own. In the vector otherwise stands for
// a node that had handed in nothing. Rule and otherwise must be alike at all nodes.
func (n *Node) Consensus(ctx context.Context, p Proposal, rule consensus.Rule, otherwise []byte,
) ([]byte, Vector, error) {
	v, err := n.propose(ctx, p, true)
	if err != nil {
		return nil, v, err
	}
	if rule.Of == nil {
		rule = consensus.Majority
	}
	vector := slices.Clone(v.Values)
	for i := range vector {
		if vector[i] == nil {
			vector[i] = otherwise
		}
	}
	return rule.Of(vector, otherwise), v, nil
}

// names is one process of a stream in which all are sources: slots of interactive
// consistency. In a slot a process says all that its callers ask for, by name, and of
// each whether it is ripe: whether its caller has waited for others. The vector of a name
// is that of the first slot in which more processes than may lie say that it is ripe. So
// it is a function of what is agreed on, and no name is used up before a correct process
// has waited.
//
// A process asks for a slot when something is ripe, and again later, less and less often,
// as long as that is not agreed on.
//
// Which names are known is a function of all slots, so that a process that has missed one
// returns: see agree_list.go.
type names struct {
	slots
	when lockstep.Schedule

	pending []pending // in the order in which they were asked for
	known   []outcome // the oldest first
	list    list
}

// pending is a proposal that is not agreed on.
type pending struct {
	item
	numbers []uint64 // of the questions
	said    uint64   // the slot in which it was said last
	ripe    parley.Tick
	call    parley.Tick // when a slot is to be asked for
	wait    parley.Tick // until it is asked for again
}

// outcome is what was agreed on under a name.
type outcome struct {
	name   string
	slot   uint64
	values []byte
	bare   bool // others told of it: the values are not here
}

// rememberedNames is how many names are known: alike at all processes, for it is what
// decides whether a name is free. As many more are kept for those who come back, who need
// the list as it was some slots ago.
const (
	rememberedNames = 1024
	keptNames       = 2 * rememberedNames
)

// withdrawn is a Request: nobody waits for the question in Value any more.
const withdrawn parley.Kind = parley.Local + 0x41

// namesTimer is set for when a slot is to be asked for next.
const namesTimer parley.Timer = 1

func newNames(t stream, n, window int, self parley.ID, when lockstep.Schedule) (*names, lockstep.Protocol) {
	m := &names{slots: slots{t: t, self: self, n: n, window: window}, when: when}
	p := m.protocol(t.rounds(n))
	m.pipeline(p, when, m)
	m.list = newList(n)
	return m, p
}

// Start: see asks.
func (m *names) Start(s *parley.Step) {
	m.list.whole = !s.Restart
	m.line.Whole(!s.Restart)
	m.line.Start(s, m.intact)
}

// Request is a question, or that it is taken back.
func (m *names) Request(s *parley.Step, q parley.Msg) {
	if q.Kind == withdrawn {
		for i := range m.pending {
			of := &m.pending[i].numbers
			*of = slices.DeleteFunc(*of, func(number uint64) bool { return number == q.Value })
		}
		m.pending = slices.DeleteFunc(m.pending, func(p pending) bool { return len(p.numbers) == 0 })
		return
	}
	one, _, ok := readItem(q.Body)
	if !ok {
		return // the second copy of a twin, in a laboratory, is asked for another value than its node
	}
	known, i := m.outcome(one.name), 0
	if known == nil {
		i = slices.IndexFunc(m.pending, func(p pending) bool { return p.name == one.name })
	}
	wait := parley.Tick(q.Seq)
	switch {
	case known != nil && known.bare:
		s.Indicate(parley.Msg{Kind: unanswered, Seq: known.slot, Value: q.Value})
		return
	case known != nil:
		m.answer(s, known, q.Value)
		return
	case i >= 0:
		m.pending[i].numbers = append(m.pending[i].numbers, q.Value)
	default:
		m.pending = append(m.pending, pending{
			item: one, numbers: []uint64{q.Value}, ripe: s.Now + wait, call: s.Now + wait, wait: max(wait, m.when.Delta),
		})
	}
	m.after(s)
}

// outcome returns what was agreed on under a name, if that is known.
func (m *names) outcome(name string) *outcome {
	for i := max(0, len(m.known)-rememberedNames); i < len(m.known); i++ {
		if m.known[i].name == name {
			return &m.known[i]
		}
	}
	return nil
}

func (m *names) answer(s *parley.Step, o *outcome, number uint64) {
	s.Deliver(m.self, parley.Msg{Kind: parley.Decide, Seq: o.slot, Value: number, Body: o.values})
}

// Receive.
func (m *names) Receive(s *parley.Step, from parley.ID, q parley.Msg) {
	switch {
	case q.Kind >= parley.Local:
		return
	case q.Kind == where || q.Kind == at:
		m.line.Find(s, from, q)
	case q.Kind == listWanted || q.Kind == listTold:
		m.hear(s, from, q)
	case len(q.Body) > m.t.frameLimit(m.n):
		s.Refuse(from, "frame over the limit of the stream")
		return
	default:
		m.line.Receive(s, from, q)
	}
	m.after(s)
}

// Timeout.
func (m *names) Timeout(s *parley.Step, t parley.Timer) {
	if t == slotsTimer {
		m.line.Timeout(s)
	}
	m.after(s)
}

// longWait is the longest time between two slots that are asked for because of one name.
const longWait = parley.Tick(2 * time.Second)

// after asks for a slot if it is time, and sets the timer.
func (m *names) after(s *parley.Step) {
	m.returns(s)
	if len(m.pending) > 0 {
		m.line.Want(s)
	}
	if !m.line.Settled() {
		return
	}
	call, next := false, parley.Tick(0)
	for i := range m.pending {
		p := &m.pending[i]
		if p.call <= s.Now {
			call = true
			p.call = s.Now + p.wait
			p.wait = min(2*p.wait, max(longWait, 4*m.when.Delta))
		}
		if next == 0 || p.call < next {
			next = p.call
		}
	}
	if next > 0 {
		s.SetTimer(namesTimer, next-s.Now)
	}
	if call {
		m.line.Call(s, 0)
	}
}

// Fill: all that is pending, as far as there is room: what was said the longest ago first,
// so that a name for which nobody else asks does not keep others from being heard.
func (m *names) Fill(s *parley.Step, slot uint64) (parley.Msg, bool) {
	if len(m.pending) == 0 || !m.line.Speaks() {
		return parley.Msg{}, false
	}
	unripe := func(p *pending) int {
		if p.ripe <= s.Now {
			return 0
		}
		return 1
	}
	order := make([]*pending, len(m.pending))
	for i := range m.pending {
		order[i] = &m.pending[i]
	}
	slices.SortStableFunc(order, func(a, b *pending) int {
		return cmp.Or(cmp.Compare(a.said, b.said), cmp.Compare(unripe(a), unripe(b)))
	})
	var entry []byte
	for _, p := range order {
		flag := byte(1 - unripe(p))
		if more := p.item.append(append(slices.Clip(entry), flag)); len(more) <= m.t.limit() {
			entry, p.said = more, slot
		}
	}
	return parley.Msg{Kind: parley.Propose, Body: entry}, true
}

// Over: a vector is agreed on.
func (m *names) Over(s *parley.Step, slot uint64, delivered []parley.Effect) {
	for _, e := range delivered {
		if e.Msg.Kind != parley.Decide {
			continue
		}
		if !m.list.whole {
			m.list.held = append(m.list.held, agreedOn{slot, e.Msg.Body}) // until the list is there
			continue
		}
		entries, err := interactive.DecodeVector(e.Msg.Body)
		if err != nil {
			panic(err) // it was written by this process
		}
		m.vector(s, slot, entries)
	}
}

// said is what a vector has under one name.
type said struct {
	ripe   int
	values [][]byte
}

// vector decides on the names in a vector that enough say are ripe.
func (m *names) vector(s *parley.Step, slot uint64, entries [][]byte) {
	all := make(map[string]*said)
	for id, entry := range entries {
		eachItem(entry, func(one item, ripe bool) {
			of := all[one.name]
			if of == nil {
				of = &said{values: make([][]byte, m.n)}
				all[one.name] = of
			}
			if of.values[id] != nil {
				return // a second one of the same process
			}
			of.values[id] = one.value
			if ripe {
				of.ripe++
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name].ripe > m.t.m && m.outcome(name) == nil {
			m.decide(s, &outcome{name: name, slot: slot, values: appendValues(nil, all[name].values)})
		}
	}
}

func (m *names) decide(s *parley.Step, o *outcome) {
	if len(m.known) == keptNames {
		m.known = slices.Delete(m.known, 0, 1)
		m.list.cut = true
	}
	if old := len(m.known) - rememberedNames; old >= 0 {
		m.known[old].values = nil // of the last ones alone, as they are
	}
	m.known = append(m.known, *o)
	i := slices.IndexFunc(m.pending, func(p pending) bool { return p.name == o.name })
	if i < 0 {
		return
	}
	for _, number := range m.pending[i].numbers {
		m.answer(s, o, number)
	}
	m.pending = slices.Delete(m.pending, i, i+1)
}

func (m *names) State(v *parley.Vars) {
	m.list.state(v)
	parley.Slice(v, "pending", &m.pending, func(_ int, p *pending) {
		visitText(v, "name", &p.name)
		v.Bytes("value", &p.value)
		parley.Slice(v, "numbers", &p.numbers, func(_ int, number *uint64) { parley.Num(v, "number", number) })
		parley.Num(v, "said", &p.said)
		v.Time("ripe", &p.ripe)
		v.Time("call", &p.call)
		parley.Num(v, "wait", &p.wait)
	})
	parley.Slice(v, "known", &m.known, func(_ int, o *outcome) {
		visitText(v, "name", &o.name)
		parley.Num(v, "slot", &o.slot)
		v.Bytes("values", &o.values)
		v.Bool("bare", &o.bare)
	})
	v.Machine("line", m.line)
}

func visitText(v *parley.Vars, name string, text *string) {
	b := []byte(*text)
	if v.Bytes(name, &b); v.Loading() {
		*text = string(b)
	}
}
