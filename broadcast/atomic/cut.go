package atomic

import (
	"cmp"
	"encoding/binary"
	"slices"

	"parley"
	"parley/broadcast/problem"
	"parley/membership/group"
)

// item is a message in a report or in a cut. A report says what a member knows of
// it: Undeliverable with its own proposal, Deliverable with the final priority, or
// Unknown of an own message that it does not hold and that has no final priority.
// In a cut all are Deliverable.
type item struct {
	name
	to       parley.Set
	body     []byte
	state    State
	priority Priority
}

// Report returns what this member holds, its own messages that are not finished,
// and where it stands.
func (l *layer) Report() []byte {
	var items []item
	for _, e := range l.held {
		items = append(items, item{e.name, e.to, e.body, e.state, e.priority})
	}
	for _, o := range l.own {
		if l.held.at(o.name) != nil {
			continue // as a receiver it knows as much of it
		}
		it := item{name: o.name, to: o.to, body: o.body}
		if o.final {
			it.state, it.priority = Deliverable, o.highest
		}
		items = append(items, it)
	}
	return appendItems(appendPriority(nil, l.last), items)
}

// Cut is what all that install the next view will have delivered of this one. A
// final priority that is reported stands: somebody may have delivered by it. A
// message without one was delivered by nobody, and comes behind all others: an
// excluded process may have delivered any of those, and nothing behind them. A
// reporter whose report cannot be read has reported nothing.
func (l *layer) Cut(reports [][]byte) []byte {
	var union []item
	top := uint64(0)
	for _, report := range reports {
		last, b, ok := readPriority(report, l.n, most)
		if !ok {
			continue
		}
		items, ok := readItems(b, l.n, most)
		if !ok {
			continue
		}
		top = max(top, last.Number)
		for _, it := range items {
			top = max(top, it.priority.Number)
			i, there := slices.BinarySearchFunc(union, it.name, func(a item, n name) int { return a.compare(n) })
			if !there {
				union = slices.Insert(union, i, it)
			} else if it.state == Deliverable {
				union[i] = it
			}
		}
	}
	for i := range union {
		if union[i].state != Deliverable {
			top++
			union[i].state, union[i].priority = Deliverable, Priority{top, union[i].sender}
		}
	}
	slices.SortFunc(union, inOrder)
	return appendItems(nil, union)
}

// Install delivers what this member has not: what is for it and has a priority
// above the last one that it, or the sponsor of a joiner, delivered. All that is of the
// view begins again.
func (l *layer) Install(s *parley.Step, cut []byte, next group.View) {
	if cut != nil {
		items, ok := readItems(cut, l.n, beyond)
		if !ok {
			panic("atomic: the view's cut cannot be read")
		}
		for _, it := range l.with(items) {
			if it.to.Has(l.self) && it.priority.Compare(l.last) > 0 {
				l.handUp(s, it.sender, it.to, it.body)
			}
		}
	}
	l.view, l.sent, l.queue, l.own = next, 0, queue{}, nil
	clear(l.out)
	clear(l.in)
	l.last = Priority{}
}

// with adds to the messages of a cut what this member holds with a final priority
// and had delivered before it reported: after a restart it knows no more of that.
func (l *layer) with(items []item) []item {
	there := len(items)
	for _, e := range l.held {
		if e.state == Deliverable && !slices.ContainsFunc(items[:there], func(it item) bool { return it.name == e.name }) {
			items = append(items, item{e.name, e.to, e.body, e.state, e.priority})
		}
	}
	if len(items) > there {
		slices.SortFunc(items, inOrder)
	}
	return items
}

// inOrder compares by priority. In a report that no member wrote two may have one.
func inOrder(a, b item) int { return cmp.Or(a.priority.Compare(b.priority), a.compare(b.name)) }

// Reads tells whether Install would take the cut.
func (l *layer) Reads(cut []byte) bool {
	_, ok := readItems(cut, l.n, beyond)
	return ok
}

// Snapshot is the priority of the last message that was delivered.
func (l *layer) Snapshot() []byte { return appendPriority(nil, l.last) }

// Restore takes a joiner to where its sponsor stands.
func (l *layer) Restore(snapshot []byte) bool {
	last, rest, ok := readPriority(snapshot, l.n, most)
	if ok && len(rest) == 0 {
		l.last = last
	}
	return ok && len(rest) == 0
}

func appendPriority(b []byte, p Priority) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, p.Number), uint64(p.By))
}

// beyond is above the numbers in any cut, which gives out new ones above the greatest
// of the view.
const beyond = 2 * most

// readPriority reads one with a number up to the limit, of one of n processes.
func readPriority(b []byte, n int, limit uint64) (p Priority, rest []byte, ok bool) {
	number, b, err := parley.ReadUvarint(b, limit)
	if err != nil {
		return p, nil, false
	}
	by, b, err := parley.ReadUvarint(b, uint64(n-1))
	return Priority{number, parley.ID(by)}, b, err == nil
}

// appendItems appends how many there are, and each.
func appendItems(b []byte, items []item) []byte {
	b = binary.AppendUvarint(b, uint64(len(items)))
	for _, it := range items {
		b = binary.AppendUvarint(b, uint64(it.sender))
		b = binary.AppendUvarint(b, it.k)
		b = append(b, byte(it.state))
		b = appendPriority(b, it.priority)
		b = problem.AppendSet(b, it.to)
		b = binary.AppendUvarint(b, uint64(len(it.body)))
		b = append(b, it.body...)
	}
	return b
}

// readItems reads items of n processes that take up all of b, with priorities up to a
// limit.
func readItems(b []byte, n int, limit uint64) (items []item, ok bool) {
	number := func(limit uint64) (x uint64) {
		if ok {
			var err error
			x, b, err = parley.ReadUvarint(b, limit)
			ok = err == nil
		}
		return x
	}
	ok = true
	for range number(uint64(len(b))) {
		it := item{name: name{parley.ID(number(uint64(n - 1))), number(most)}, state: State(number(2))}
		if ok {
			it.priority, b, ok = readPriority(b, n, limit)
		}
		if ok {
			var err error
			it.to, b, err = problem.ReadSet(b, n)
			ok = err == nil
		}
		size := number(uint64(len(b)))
		if !ok || size > uint64(len(b)) {
			return nil, false
		}
		it.body, b = b[:size:size], b[size:]
		items = append(items, it)
	}
	return items, ok && len(b) == 0
}
