package ordered

import (
	"cmp"
	"maps"
	"slices"

	"parley"
)

// byAge returns the open transactions, the oldest first.
func (m *Machine) byAge() []*transaction {
	return slices.SortedFunc(maps.Values(m.open), func(a, b *transaction) int { return cmp.Compare(a.number, b.number) })
}

// State visits every variable of the machine.
func (m *Machine) State(v *parley.Vars) {
	v.Durable(func() { m.stateOrder(v) })
	m.progress.state(v)
	m.outcomes.state(v, m.c.N)
}

// stateOrder visits what the process has found in the order, and what others have reported.
func (m *Machine) stateOrder(v *parley.Vars) {
	parley.Num(v, "number", &m.number)
	parley.Num(v, "stray", &m.stray)
	var list []*transaction
	if !v.Loading() {
		list = m.byAge()
	}
	parley.Slice(v, "open", &list, func(_ int, x **transaction) {
		if *x == nil {
			*x = new(transaction)
		}
		(*x).state(v, m.c.N)
	})
	if v.Loading() {
		clear(m.open)
		clear(m.names)
		clear(m.loads)
		for _, t := range list {
			m.add(t)
		}
	}
	m.past.State(v)
	m.heard.State(v)
}

func (t *transaction) state(v *parley.Vars, n int) {
	parley.Num(v, "number", &t.number)
	t.spec.Visit(v, n)
	v.Set("yes", &t.yes)
	v.Set("expired", &t.expired)
	v.Bool("voted", &t.voted)
	v.Bool("learned", &t.learned)
}
