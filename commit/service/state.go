package service

import (
	"strconv"

	"parley"
)

// State visits every variable. The history is durable, because a request for a transaction under
// a name that it has had is answered with the outcome.
func (m *Machine) State(v *parley.Vars) {
	v.Durable(func() {
		parley.Num(v, "next", &m.next)
		parley.Num(v, "blank", &m.blank)
		m.history.State(v)
		m.liveState(v)
	})
	had := m.names
	if v.Loading() && !v.Skips() {
		m.names = make(map[string]*transaction)
	}
	for id := range m.of {
		for _, t := range m.of[id].list {
			t.state(v)
			named := had[t.spec.Name] == t
			v.Bool("named", &named)
			if named && v.Loading() && !v.Skips() {
				m.names[t.spec.Name] = t
			}
		}
	}
	for id := range m.of {
		c := &m.of[id]
		parley.Num(v, "low", &c.low)
		parley.Num(v, "below", &c.below)
		parley.Slice(v, "open", &c.open, func(_ int, x *uint64) { parley.Num(v, "number", x) })
	}
	parley.Num(v, "records", &m.records)
	v.Bool("news", &m.news)
	v.Bool("pulse", &m.pulse)
}

func (m *Machine) liveState(v *parley.Vars) {
	var list []*transaction
	for id := range m.of {
		list = append(list, m.of[id].list...)
	}
	if v.Loading() {
		list = nil
	}
	parley.Slice(v, "live", &list, func(_ int, x **transaction) {
		if *x == nil {
			*x = new(transaction)
		}
		t := *x
		parley.Num(v, "path", &t.path)
		b := t.spec.Encode()
		v.Bytes("spec", &b)
		if v.Loading() {
			var ok bool
			if t.spec, ok = ReadSpec(b, m.c.N); !ok || !t.spec.Has(m.self) || int(CoordinatorOf(t.path)) >= m.c.N {
				v.Fail()
				t.spec = Spec{Name: " ", Members: []parley.ID{m.self}}
			}
		}
		v.Bool("told", &t.told)
		v.Bool("yes", &t.yes)
	})
	if v.Loading() {
		m.live, m.names = make(map[parley.Path]*transaction), make(map[string]*transaction)
		for id := range m.of {
			m.of[id].list, m.of[id].bytes = nil, 0
		}
		for _, t := range list {
			t.logged, t.inner = true, m.machine(t.spec)
			m.add(t)
		}
	}
}

func (t *transaction) state(v *parley.Vars) {
	v.Inner("#"+strconv.FormatUint(uint64(t.path), 10), t.inner, nil)
	t.why.state(v)
	parley.Num(v, "taken", &t.why.Claim)
	v.Bool("logged", &t.logged)
	parley.Num(v, "outcome", &t.outcome)
	v.Set("acked", &t.acked)
	v.Bool("asked", &t.asked)
	v.Bool("ready", &t.ready)
	v.Bool("given", &t.given)
	v.Bool("begun", &t.begun)
	v.Set("heard", &t.heard)
	v.Bool("blocked", &t.blocked)
	v.Bool("reminded", &t.reminded)
}
