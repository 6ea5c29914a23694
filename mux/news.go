package mux

import "parley"

// news is a row of indications of one kind. Which of them was first is forgotten:
// a layer beneath that indicates several at once goes by the names of processes.
// Between kinds it counts, for what was said before a view is not of that view.
type news struct {
	kind  parley.Kind
	about []parley.Msg // by process, and behind them that about nobody; Kind 0 where there is none
}

// note remembers an indication. An older one of its kind about the same process
// is no news any more.
func (m *instances) note(q parley.Msg) {
	nobody := m.p.N
	place := min(int(q.Origin), nobody)
	if q.Kind == parley.View {
		place = nobody // Origin is not used
	}
	told := m.told
	m.told = nil
	for _, row := range told {
		if row.kind == q.Kind {
			row.about[place] = parley.Msg{}
		}
		for at, old := range row.about {
			m.keep(at, old)
		}
	}
	m.keep(place, q)
}

// keep puts an indication in its place in the last row, or begins another row.
func (m *instances) keep(at int, q parley.Msg) {
	if q.Kind == 0 {
		return
	}
	if k := len(m.told); k == 0 || m.told[k-1].kind != q.Kind {
		m.told = append(m.told, news{q.Kind, make([]parley.Msg, m.p.N+1)})
	}
	m.told[len(m.told)-1].about[at] = q
}

// state visits a row. The layer beneath speaks of processes in Origin; what the
// protocol's own Rename makes of messages is no matter.
func (row *news) state(v *parley.Vars, n int) {
	parley.Num(v, "kind", &row.kind)
	if len(row.about) != n+1 {
		row.about = make([]parley.Msg, n+1)
	}
	parley.PerProcess(v, "about", row.about[:n], func(_ parley.ID, q *parley.Msg) {
		visit(v, q, func() { v.ID("origin", &q.Origin) })
	})
	nobody := &row.about[n]
	visit(v, nobody, func() { parley.Num(v, "origin", &nobody.Origin) })
}

func visit(v *parley.Vars, q *parley.Msg, origin func()) {
	parley.Num(v, "kind", &q.Kind)
	if q.Kind == 0 {
		return
	}
	origin()
	parley.Num(v, "seq", &q.Seq)
	parley.Num(v, "value", &q.Value)
	v.Bytes("body", &q.Body)
}
