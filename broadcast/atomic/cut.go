package atomic

import (
	"cmp"
	"encoding/binary"
	"slices"

	"parley"
	"parley/membership/group"
)

// A report lists what a member knows about messages: Undeliverable with its own proposal, Deliverable with
// the final priority, or Unknown for an own message that it does not hold and that has no final priority. In
// a cut all are Deliverable.

// Report returns what this member holds, its own messages that are not finished, and the priority of its last
// delivery.
func (l *layer) Report() []byte {
	items := slices.Clone(l.held)
	for _, o := range l.own {
		if l.held.At(o.name) != nil {
			continue // its entry as a receiver says the same
		}
		it := entry{name: o.name, to: o.to, body: o.body}
		if o.final {
			it.state, it.priority = Deliverable, o.highest
		}
		items = append(items, it)
	}
	return appendItems(appendPriority(nil, l.last), items)
}

// Cut returns what all that install the next view will have delivered of this one. A reported final priority
// stands, because a process may have delivered by it. No process has delivered a message without one, and it
// comes after all others: an excluded process may have delivered any of those, and nothing after them. A
// malformed report counts as empty.
func (l *layer) Cut(reports [][]byte) []byte {
	var union entries
	top := uint64(0)
	for _, report := range reports {
		r := parley.Reader{Rest: report}
		last := readPriority(&r, l.n, maxNumber)
		items, ok := readItems(r, l.n, maxNumber)
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

// Install delivers what this member has not delivered: what is addressed to it and has a greater priority
// than the last delivery of the member, or of the sponsor of a joiner. Then it resets the state of the view.
func (l *layer) Install(s *parley.Step, cut []byte, next group.View) {
	if cut != nil {
		items, ok := readItems(parley.Reader{Rest: cut}, l.n, maxCutNumber)
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

// with adds to the messages of a cut what this member holds with a final priority and had delivered before it
// reported: after a restart it no longer knows that it had delivered them.
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

// inOrder compares by priority. In a malformed report two messages may have the same.
func inOrder(a, b entry) int { return cmp.Or(a.priority.Compare(b.priority), a.Compare(b.name)) }

// Reads reports whether Install would take the cut.
func (l *layer) Reads(cut []byte) bool {
	_, ok := readItems(parley.Reader{Rest: cut}, l.n, maxCutNumber)
	return ok
}

// Snapshot returns the priority of the last delivery.
func (l *layer) Snapshot() []byte { return appendPriority(nil, l.last) }

// Restore sets the state of a joiner to that of its sponsor.
func (l *layer) Restore(snapshot []byte) bool {
	r := parley.Reader{Rest: snapshot}
	last := readPriority(&r, l.n, maxNumber)
	if r.Done() {
		l.last = last
	}
	return r.Done()
}

func appendPriority(b []byte, p Priority) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, p.Number), uint64(p.By))
}

// maxCutNumber is greater than the numbers in any cut, which assigns new ones above the greatest of the view.
const maxCutNumber = 2 * maxNumber

// readPriority decodes a priority with a number up to limit, proposed by one of n processes.
func readPriority(r *parley.Reader, n int, limit uint64) Priority {
	return Priority{r.Number(limit), r.ID(n)}
}

// appendItems appends the number of items, and each of them.
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

// readItems decodes items of n processes, up to the end, with priorities up to a limit.
func readItems(r parley.Reader, n int, limit uint64) (items []entry, ok bool) {
	for i := r.Count(); i > 0 && !r.Bad; i-- {
		items = append(items, entry{
			name: name{r.ID(n), r.Number(maxNumber)}, state: State(r.Number(uint64(Deliverable))),
			priority: readPriority(&r, n, limit), to: r.Set(n), body: r.Bytes(),
		})
	}
	return items, r.Done()
}
