package group

import (
	"slices"

	"parley"
)

// A member helps processes that ask it to join: it sends its state, and then all that it delivers, until they
// are in a view.

// learner is a process that this sponsor helps to join.
type learner struct {
	joinCandidate
	sent     bool        // the snapshot was sent
	position uint64      // of the last delivery sent to it
	ready    bool        // it has the snapshot
	since    parley.Tick // when it asked to join
}

// learners are the processes that one sponsor helps to join, by id.
type learners []learner

// of returns the learner with an id, or nil.
func (all learners) of(id parley.ID) *learner {
	for i := range all {
		if all[i].id == id {
			return &all[i]
		}
	}
	return nil
}

// drop removes the learners for which the function is true.
func (all *learners) drop(which func(learner) bool) { *all = slices.DeleteFunc(*all, which) }

// add adds a learner in place of any other incarnation of it.
func (all *learners) add(c joinCandidate, now parley.Tick) {
	all.drop(func(l learner) bool { return l.id == c.id })
	at, _ := slices.BinarySearchFunc(*all, c.id, func(l learner, id parley.ID) int { return int(l.id) - int(id) })
	*all = slices.Insert(*all, at, learner{joinCandidate: c, since: now})
}

// ready returns the learners that have caught up.
func (all learners) ready() (list []joinCandidate) {
	for _, l := range all {
		if l.ready {
			list = append(list, l.joinCandidate)
		}
	}
	return list
}

// forward: upon delivering at position i with learners: send FORWARD(i, message) to the learners that it is
// addressed to.
func (all learners) forward(s *parley.Step, view uint64, to parley.Set, sender parley.ID, body []byte) {
	for i := range all {
		if l := &all[i]; l.sent && to.Has(l.id) {
			l.position++
			send(s, view, l.id, parley.Msg{Kind: Forward, Origin: sender, Seq: l.position, Value: l.life, Body: body})
		}
	}
}

// State visits every variable.
func (all *learners) State(v *parley.Vars) {
	parley.Slice(v, "learners", (*[]learner)(all), func(_ int, l *learner) {
		v.ID("id", &l.id)
		parley.Num(v, "disk", &l.disk)
		parley.Num(v, "incarnation", &l.life)
		v.Bool("sent", &l.sent)
		parley.Num(v, "position", &l.position)
		v.Bool("ready", &l.ready)
		v.Time("asked", &l.since)
	})
}

// sponsor: upon receiving JOIN(j): send SNAPSHOT(v, position, state) to j. A frozen member does so too, and
// delivers nothing meanwhile: the view may be unable to end without j.
func (g *membership) sponsor(s *parley.Step, j parley.ID, m parley.Msg) {
	c, known, here := joinCandidate{j, m.Value, m.Seq}, g.at(j), g.learners.of(j)
	switch {
	case c.life == 0 || c.disk == 0 || !g.believable(c, g.c.Liars):
		s.Refuse(j, "no incarnation")
		return
	case c.disk < known.disk, // a copy of a lost disk
		g.view.Members.Has(j) && !c.after(known), here != nil && !c.after(here.joinCandidate):
		g.correct(s, j) // it came late
		return
	}
	// A process that asks is not the member with its id: that incarnation has ended.
	if g.view.Members.Has(j) {
		g.suspicions.gone.Add(j)
	}
	if !g.leaving {
		g.learners.add(c, g.now)
		if g.c.State {
			s.Indicate(parley.Msg{Kind: SnapshotWanted, Origin: j, Seq: g.history.position})
		} else {
			g.snapshot(s, g.view.Number, nil)
		}
	}
	g.consider(s)
}

// ready: upon READY: the learner has caught up, and follows on a FIFO link. The report may name it. A member
// that has already reported renews its report: the view may be waiting for that.
func (g *membership) ready(s *parley.Step, from parley.ID, m parley.Msg) {
	l := g.learners.of(from)
	if l == nil || !l.sent || l.ready || l.life != m.Seq {
		return
	}
	if l.ready = true; g.frozen {
		g.ballot.Refresh()
		g.propose(s)
		return
	}
	g.consider(s)
}
