package service

import (
	"cmp"
	"iter"
	"slices"

	"parley"
)

// txTable holds what a process knows of transactions: the live ones, by path, name and coordinator, and the ones
// that finished last.
type txTable struct {
	c    Config
	self parley.ID

	next    uint64 // number of the next transaction of this process
	blank   uint64 // if not 0: lost what it knew of others' transactions, and of its own with lower numbers
	live    map[parley.Path]*transaction
	names   map[string]*transaction // the live transaction that holds the name
	of      []coordinatorTxs        // by coordinator
	history History
}

// coordinatorTxs holds the live transactions of one coordinator.
type coordinatorTxs struct {
	list  []*transaction // by number
	bytes int            // of parts
	low   uint64         // lower numbers are over
	below uint64         // lower numbers are over too, except those in open
	open  []uint64
}

func newBook(c Config, self parley.ID) txTable {
	return txTable{
		c: c, self: self, next: c.First, live: make(map[parley.Path]*transaction),
		names: make(map[string]*transaction), of: make([]coordinatorTxs, c.N), history: NewHistory(c.Remember),
	}
}

// add makes t live.
func (b *txTable) add(t *transaction) {
	b.live[t.path] = t
	b.name(t)
	c := &b.of[CoordinatorOf(t.path)]
	i, _ := slices.BinarySearchFunc(c.list, t, func(x, y *transaction) int { return cmp.Compare(x.path, y.path) })
	c.list = slices.Insert(c.list, i, t)
	c.bytes += t.spec.Size()
	if CoordinatorOf(t.path) == b.self {
		b.next = max(b.next, NumberOf(t.path)+1)
	}
}

// all iterates over the live transactions, by coordinator and age.
func (b *txTable) all() iter.Seq[*transaction] {
	return func(yield func(*transaction) bool) {
		for id := range b.of {
			for _, t := range b.of[id].list {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// drop forgets the transactions of coordinator id for which over returns true.
func (b *txTable) drop(id parley.ID, over func(t *transaction) bool) {
	c := &b.of[id]
	c.list = slices.DeleteFunc(c.list, func(t *transaction) bool {
		if !over(t) {
			return false
		}
		delete(b.live, t.path)
		if b.names[t.spec.Name] == t {
			delete(b.names, t.spec.Name)
		}
		c.bytes -= t.spec.Size()
		return true
	})
}

// over reports whether the coordinator has announced that its transaction number is over.
func (c *coordinatorTxs) over(number uint64) bool {
	if number < c.low {
		return true
	}
	_, open := slices.BinarySearch(c.open, number)
	return number < c.below && !open
}

// durable visits what survives a crash. The history is durable because a repeated request under the name of a
// finished transaction is answered with its outcome.
func (b *txTable) durable(v *parley.Vars) {
	parley.Num(v, "next", &b.next)
	parley.Num(v, "blank", &b.blank)
	b.history.State(v)
	b.liveState(v)
}

func (b *txTable) liveState(v *parley.Vars) {
	var list []*transaction
	if !v.Loading() {
		list = slices.Collect(b.all())
	}
	parley.Slice(v, "live", &list, func(_ int, x **transaction) {
		if *x == nil {
			*x = new(transaction)
		}
		t := *x
		parley.Num(v, "path", &t.path)
		if t.spec.Visit(v, b.c.N); v.Loading() && (!t.spec.Has(b.self) || int(CoordinatorOf(t.path)) >= b.c.N) {
			v.Fail()
			t.path, t.spec.Members = PathOf(b.self, 0), []parley.ID{b.self}
		}
		v.Bool("told", &t.told)
		v.Bool("yes", &t.yes)
	})
	if v.Loading() {
		b.live, b.names = make(map[parley.Path]*transaction), make(map[string]*transaction)
		for id := range b.of {
			b.of[id].list, b.of[id].bytes = nil, 0
		}
		for _, t := range list {
			t.logged, t.inner = true, b.c.machine(t.spec, b.self)
			b.add(t)
		}
	}
}

// volatile visits everything else.
func (b *txTable) volatile(v *parley.Vars) {
	had := b.names
	if v.Loading() && !v.Skips() {
		b.names = make(map[string]*transaction)
	}
	for t := range b.all() {
		t.state(v)
		named := had[t.spec.Name] == t
		if v.Bool("named", &named); named && v.Loading() && !v.Skips() {
			b.names[t.spec.Name] = t
		}
	}
	for id := range b.of {
		c := &b.of[id]
		parley.Num(v, "low", &c.low)
		parley.Num(v, "below", &c.below)
		parley.Slice(v, "open", &c.open, func(_ int, x *uint64) { parley.Num(v, "number", x) })
	}
}
