package ordered

import (
	"maps"
	"slices"

	"parley"
	"parley/commit/service"
)

// State visits every variable.
func (m *Machine) State(v *parley.Vars) {
	parley.Num(v, "number", &m.number)
	parley.Num(v, "stray", &m.stray)
	var list []*transaction
	for _, number := range slices.Sorted(maps.Keys(m.open)) {
		list = append(list, m.open[number])
	}
	if v.Loading() {
		list = nil
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
	m.recall.state(v, m.c.N)
}

func (t *transaction) state(v *parley.Vars, n int) {
	parley.Num(v, "number", &t.number)
	b := t.spec.Encode()
	if v.Bytes("spec", &b); v.Loading() {
		var ok bool
		if t.spec, ok = service.ReadSpec(b, n); !ok {
			v.Fail()
			t.spec = service.Spec{Name: " ", Members: []parley.ID{0}}
		}
	}
	v.Set("yes", &t.yes)
	v.Set("expired", &t.expired)
	v.Bool("voted", &t.voted)
	v.Bool("learned", &t.learned)
}
