package atomic

import (
	"cmp"
	"fmt"

	"parley"
	"parley/broadcast/problem"
)

// Priority is the place of a message in the total order. The lowest priority comes first. Priorities are ordered by
// number, and then by the process that proposed the number. No process proposes a number twice, so no two messages
// have the same priority.
type Priority struct {
	Number uint64
	By     parley.ID
}

// Compare returns a negative number if p comes before q, and a positive number if q comes first.
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

// Compare is negative if n comes before m, by senders and then by numbers.
func (n name) Compare(m name) int {
	return cmp.Or(cmp.Compare(n.sender, m.sender), cmp.Compare(n.k, m.k))
}

// entry is what a receiver knows about one message.
type entry struct {
	name
	to       parley.Set // its receivers
	body     []byte     // nil once delivered
	state    State
	priority Priority // the own proposal while undeliverable, then the final one

	ballot uint64     // the lecture's form: the greatest one seen for the message
	logged parley.Set // the form in views: receivers that have logged the final priority
}

// entries is a list in the order of names.
type entries = problem.Sorted[name, entry]

// queue is a receiver's message queue.
type queue struct {
	held entries // undelivered messages; an unknown one is there only for its ballot
	// counter is the largest number that was ever proposed here or seen as final, including those of
	// delivered messages.
	counter uint64
}

// hold buffers a message, undeliverable, with a priority greater than all that this process knows. The
// lecture's rule considers only the buffer, which a message leaves when it is delivered: then another message
// gets its number, or a lower one.
func (q *queue) hold(self parley.ID, n name, to parley.Set, body []byte) *entry {
	q.counter++
	e, _ := q.held.Put(n, entry{name: n})
	e.to, e.body, e.state, e.priority = to, body, Undeliverable, Priority{q.counter, self}
	return e
}

// exhausted reports whether no greater number is left, after 2^56 of them.
func (q *queue) exhausted() bool { return q.counter >= maxNumber }

// settle gives a message its final priority.
func (q *queue) settle(e *entry, final Priority) {
	q.counter = max(q.counter, final.Number)
	e.state, e.priority = Deliverable, final
}

// head returns the message with the lowest priority, deliverable or not.
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

// show shows the held messages with their priorities and what they wait for.
func (q *queue) show(shown *parley.Shown) {
	head := q.head()
	for i := range q.held {
		e := &q.held[i]
		if e.state == Unknown {
			continue
		}
		x := problem.Held(e.sender, e.k, e.body, "")
		x.Place = fmt.Sprintf("%d by %s, proposed", e.priority.Number, shown.Called(e.priority.By))
		switch {
		case e.state == Undeliverable:
			x.Waits = "its final priority"
		case e != head:
			x.Waits = "a message with a smaller priority, proposed or final"
		default:
			x.Waits = "notice that all receivers know its final priority"
		}
		if e.state != Undeliverable {
			x.Place = fmt.Sprintf("%d by %s, final", e.priority.Number, shown.Called(e.priority.By))
		}
		shown.Derive(x)
	}
}

func (q *queue) visit(v *parley.Vars) {
	if shown := v.Shown(); shown != nil {
		q.show(shown)
	}
	parley.Num(v, "counter", &q.counter)
	visit(v, "held", &q.held)
}

func visit(v *parley.Vars, what string, l *entries) {
	parley.Slice(v, what, (*[]entry)(l), func(_ int, x *entry) {
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
