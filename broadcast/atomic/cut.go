package atomic

import (
	"cmp"
	"encoding/binary"
	"slices"

	"parley"
	"parley/membership/group"
)

// A report says what a member knows of messages: Undeliverable with its own proposal, Deliverable with the final
// priority, or Unknown of an own message that it does not hold and that has no final priority. In a cut all are
// Deliverable.

// Report returns what this member holds, its own messages that are not finished,
// and where it stands.
func (l *layer) Report() []byte {
	items := slices.Clone(l.held)
	for _, o := range l.own {
		if l.held.At(o.name) != nil {
			continue // as a receiver it knows as much of it
		}
		it := entry{name: o.name, to: o.to, body: o.body}
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
	var union entries
	top := uint64(0)
	for _, report := range reports {
		r := parley.Reader{Rest: report}
		last := readPriority(&r, l.n, most)
		items, ok := readItems(r, l.n, most)
		if !ok {
			continue
		}
		top = max(top, last.Number)
		for _, it := range items {
			top = max(top, it.priority.Number)
			if known := union.At(it.name); known == nil {
				union.Put(it.name, it)
			} else if it.state == Deliverable {
				*known = it
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
		items, ok := readItems(parley.Reader{Rest: cut}, l.n, beyond)
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
func (l *layer) with(items []entry) []entry {
	there := len(items)
	for _, e := range l.held {
		if e.state == Deliverable && !slices.ContainsFunc(items[:there], func(it entry) bool { return it.name == e.name }) {
			items = append(items, e)
		}
	}
	if len(items) > there {
		slices.SortFunc(items, inOrder)
	}
	return items
}

// inOrder compares by priority. In a report that no member wrote two may have one.
func inOrder(a, b entry) int { return cmp.Or(a.priority.Compare(b.priority), a.Compare(b.name)) }

// Reads tells whether Install would take the cut.
func (l *layer) Reads(cut []byte) bool {
	_, ok := readItems(parley.Reader{Rest: cut}, l.n, beyond)
	return ok
}

// Snapshot is the priority of the last message that was delivered.
func (l *layer) Snapshot() []byte { return appendPriority(nil, l.last) }

// Restore takes a joiner to where its sponsor stands.
func (l *layer) Restore(snapshot []byte) bool {
	r := parley.Reader{Rest: snapshot}
	last := readPriority(&r, l.n, most)
	if r.Done() {
		l.last = last
	}
	return r.Done()
}

func appendPriority(b []byte, p Priority) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, p.Number), uint64(p.By))
}

// beyond is above the numbers in any cut, which gives out new ones above the greatest
// of the view.
const beyond = 2 * most

// readPriority reads one with a number up to the limit, of one of n processes.
func readPriority(r *parley.Reader, n int, limit uint64) Priority {
	return Priority{r.Number(limit), r.ID(n)}
}

// appendItems appends how many there are, and each.
func appendItems(b []byte, items []entry) []byte {
	b = binary.AppendUvarint(b, uint64(len(items)))
	for _, it := range items {
		b = binary.AppendUvarint(b, uint64(it.sender))
		b = binary.AppendUvarint(b, it.k)
		b = append(b, byte(it.state))
		b = appendPriority(b, it.priority)
		b = parley.AppendSet(b, it.to)
		b = parley.AppendBytes(b, it.body)
	}
	return b
}

// readItems reads items of n processes to the end, with priorities up to a limit.
func readItems(r parley.Reader, n int, limit uint64) (items []entry, ok bool) {
	for i := r.Count(); i > 0 && !r.Bad; i-- {
		items = append(items, entry{
			name: name{r.ID(n), r.Number(most)}, state: State(r.Number(uint64(Deliverable))),
			priority: readPriority(&r, n, limit), to: r.Set(n), body: r.Bytes(),
		})
	}
	return items, r.Done()
}
