package atomic

import (
	"cmp"
	"slices"

	"parley"
)

// Priority is the place of a message in the total order: least first, by number
// and then by the process that proposed the number. No process proposes a number
// twice, so no two messages have the same.
type Priority struct {
	Number uint64
	By     parley.ID
}

// Compare is negative if p comes before q, positive if q comes first.
func (p Priority) Compare(q Priority) int {
	return cmp.Or(cmp.Compare(p.Number, q.Number), cmp.Compare(p.By, q.By))
}

// later returns the greater of two priorities.
func later(p, q Priority) Priority {
	if p.Compare(q) < 0 {
		return q
	}
	return p
}

// name identifies a message: the k-th of its sender.
type name struct {
	sender parley.ID
	k      uint64
}

func (n name) compare(m name) int {
	return cmp.Or(cmp.Compare(n.sender, m.sender), cmp.Compare(n.k, m.k))
}

// entry is what a receiver knows of one message.
type entry struct {
	name
	to       parley.Set // its receivers
	body     []byte     // nil once delivered
	state    State
	priority Priority // the own proposal while undeliverable, then the final one

	ballot uint64     // the lecture's form: the greatest seen for the message
	logged parley.Set // the form in views: receivers that have logged the final priority
}

// entries are in the order of their names.
type entries []entry

// find returns the place of a message, and whether it is there.
func (e entries) find(n name) (int, bool) {
	return slices.BinarySearchFunc(e, n, func(e entry, n name) int { return e.compare(n) })
}

// at returns the entry of a message, nil if there is none. It stays where it is
// until the next one is put in or taken out.
func (e entries) at(n name) *entry {
	if i, there := e.find(n); there {
		return &e[i]
	}
	return nil
}

// put returns the entry of a message and makes it if there is none.
func (e *entries) put(n name) *entry {
	i, there := e.find(n)
	if !there {
		*e = slices.Insert(*e, i, entry{name: n})
	}
	return &(*e)[i]
}

// drop takes the entry of a message out.
func (e *entries) drop(n name) {
	if i, there := e.find(n); there {
		*e = slices.Delete(*e, i, i+1)
	}
}

// queue is a receiver's message queue.
type queue struct {
	held entries // not yet delivered, and none that is unknown but for its ballot
	// counter is the largest number that was ever proposed here or seen as final,
	// for messages delivered since as well.
	counter uint64
}

// hold buffers a message, undeliverable, with a priority above all that this
// process knows of. The lecture's rule looks at the buffer alone, which a message
// leaves when it is delivered: then another gets its number, or one below it.
func (q *queue) hold(self parley.ID, n name, to parley.Set, body []byte) *entry {
	q.counter++
	e := q.held.put(n)
	e.to, e.body, e.state, e.priority = to, body, Undeliverable, Priority{q.counter, self}
	return e
}

// exhausted tells that there is no number above all: 2^56 of them take a while.
func (q *queue) exhausted() bool { return q.counter >= most }

// settle gives a message its final priority.
func (q *queue) settle(e *entry, final Priority) {
	q.counter = max(q.counter, final.Number)
	e.state, e.priority = Deliverable, final
}

// head returns the message of the least priority, deliverable or not.
func (q *queue) head() *entry {
	var head *entry
	for i := range q.held {
		e := &q.held[i]
		if e.state != Unknown && (head == nil || e.priority.Compare(head.priority) < 0) {
			head = e
		}
	}
	return head
}

func (q *queue) visit(v *parley.Vars) {
	parley.Num(v, "counter", &q.counter)
	q.held.visit(v, "held")
}

func (e *entries) visit(v *parley.Vars, what string) {
	parley.Slice(v, what, (*[]entry)(e), func(_ int, x *entry) {
		x.name.visit(v)
		v.Set("to", &x.to)
		v.Bytes("body", &x.body)
		parley.Num(v, "state", &x.state)
		x.priority.visit(v)
		parley.Num(v, "ballot", &x.ballot)
		v.Set("logged", &x.logged)
	})
}

func (n *name) visit(v *parley.Vars) {
	v.ID("sender", &n.sender)
	parley.Num(v, "k", &n.k)
}

func (p *Priority) visit(v *parley.Vars) {
	parley.Num(v, "number", &p.Number)
	v.ID("by", &p.By)
}
