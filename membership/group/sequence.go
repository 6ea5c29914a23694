package group

import (
	"slices"

	"parley"
	"parley/broadcast/problem"
)

// sequence is what a process delivers, in order: the layers that deliver it, the history of the last
// deliveries, and the learners that must receive the same.
type sequence struct {
	layers   layers
	history  history
	learners learners
}

// run runs a clause of layer i in a view.
func (q *sequence) run(s *parley.Step, view uint64, i int, clause func(Layer)) {
	mark := s.Mark()
	clause(q.layers.list[i])
	q.carry(s, mark, i, view)
}

// carry addresses the effects of layer i since mark, and passes its deliveries up and to the learners that
// they are addressed to.
func (q *sequence) carry(s *parley.Step, mark, i int, view uint64) {
	if !q.layers.place(s, mark, i, view) {
		return
	}
	for k, end := mark, s.Mark(); k < end; k++ {
		e := &s.Effects[k]
		if e.Op != parley.OpDeliver {
			continue
		}
		to, body, err := problem.Decode(e.Msg, q.layers.n)
		if err != nil {
			panic("group: " + q.layers.services[i].Name + " delivers what is for nobody: " + err.Error())
		}
		q.history.add(e.To, body)
		e.Msg = parley.Msg{Kind: parley.Carried, Origin: e.Msg.Origin, Seq: q.history.position, Body: body}
		q.learners.forward(s, view, to, e.To, body) // may move the effects: e is not used after it
	}
}

// ask passes a request to the first layer that takes it.
func (q *sequence) ask(s *parley.Step, view uint64, m parley.Msg) {
	for i, service := range q.layers.services {
		if slices.Contains(service.Requests, m.Kind) {
			q.run(s, view, i, func(l Layer) { l.Request(s, m) })
			return
		}
	}
	s.Refuse(s.Self, "request that no layer takes")
}

// receive passes a message to a layer, and reports whether the layer finds that an earlier one is missing.
func (q *sequence) receive(s *parley.Step, view uint64, i int, from parley.ID, m parley.Msg) (gap bool) {
	mark := s.Mark()
	gap = q.layers.list[i].Receive(s, from, m)
	q.carry(s, mark, i, view)
	return gap
}

// answerSnapshot handles the answer to SnapshotWanted. The answer must be of the present position: the layers
// continue.
func (q *sequence) answerSnapshot(s *parley.Step, view uint64, m parley.Msg) {
	i := slices.IndexFunc(q.learners, func(l learner) bool { return !l.sent })
	switch {
	case i < 0:
	case m.Seq != q.history.position:
		s.Indicate(parley.Msg{Kind: SnapshotWanted, Origin: q.learners[i].id, Seq: q.history.position})
	default:
		q.snapshot(s, view, m.Body)
	}
}

// snapshot sends the kept deliveries and the state above the layers to all learners that wait for it.
func (q *sequence) snapshot(s *parley.Step, view uint64, state []byte) {
	at, body := q.history.position, q.history.encodeSnapshot(state)
	for i := range q.learners {
		if l := &q.learners[i]; !l.sent {
			l.sent, l.position = true, at
			send(s, view, l.id, parley.Msg{Kind: Snapshot, Seq: at, Value: l.life, Body: body})
		}
	}
}

// admit: upon decided(value), learner in next: before delivering the cut send INSTALL(position, value) to it,
// and forget it. It also drops a learner that has joined with the help of another sponsor.
func (q *sequence) admit(s *parley.Step, view uint64, d decision, value []byte) {
	q.install(s, view, value, d.next.has)
	q.learners.drop(func(l learner) bool { return d.next.view.Members.Has(l.id) && !l.after(d.next.at(l.id)) })
}

// advanceLearners serves learners that are not in next: they received the deliveries of the cut like any others,
// and INSTALL only moves them to view v+1.
func (q *sequence) advanceLearners(s *parley.Step, view uint64, value []byte) {
	q.install(s, view, value, func(joinCandidate) bool { return true })
}

func (q *sequence) install(s *parley.Step, view uint64, value []byte, who func(joinCandidate) bool) {
	for _, l := range q.learners {
		if l.sent && who(l.joinCandidate) {
			b := q.layers.appendSnapshots(parley.AppendBytes(nil, value))
			send(s, view, l.id, parley.Msg{Kind: Install, Seq: l.position, Value: l.life, Body: b})
		}
	}
}
