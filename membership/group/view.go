package group

import (
	"parley"
	"parley/agreement/ballot"
	"parley/broadcast/problem"
)

// The end of a view and the beginning of the next, which is one decision.

// vote lets the ballot make a step. What it sends is of the view that it ends.
func (g *machine) vote(s *parley.Step, clause func(*ballot.Instance)) {
	mark, number := s.Mark(), g.view.Number
	clause(g.ballot)
	s.Take(mark, func(e *parley.Effect) bool {
		if e.Op == parley.OpSend && e.Epoch == 0 {
			e.Epoch = uint32(number)
		}
		// A process that does not go on from its log needs no records.
		return e.Op == parley.OpAppend && e.Path == 0 && !g.c.Durable && !isLife(e.Msg.Body)
	})
}

// freeze: the report is fixed, and with it what this member has done in this view.
func (g *machine) freeze() {
	if !g.frozen {
		g.frozen, g.since = true, g.now
	}
}

// Report: pending of each layer with bodies and the key of its last delivery, the
// learner if it has caught up, and whether this member leaves.
func (g *machine) Report() []byte {
	g.freeze()
	r := report{life: g.life, leaving: g.leaving, exclude: g.exclude}
	if g.learner.ready {
		r.learner = []candidate{g.learner.candidate}
	}
	for _, layer := range g.layers {
		r.layers = append(r.layers, layer.Report())
	}
	return r.encode()
}

// Enough: every member that is not suspected is among the reporters, who are a
// majority of the view, or the flush timer ran out. Nobody outside can be kept: its
// messages that it alone has would be lost.
func (g *machine) Enough(reporters parley.Set) bool {
	missing := g.view.Members.Minus(reporters).Minus(g.suspected())
	return missing == (parley.Set{}) || g.now >= g.flush
}

// Choose: next := {r in S: not leaving} and the learners named in the reports; and
// one cut per layer. A reporter is alive, suspected or not.
func (g *machine) Choose(reports []ballot.Report) []byte {
	d := decision{next: View{Number: g.view.Number + 1}, lives: make([]uint64, g.c.N)}
	of := make([][][]byte, len(g.layers)) // the reports, by layer
	var learners []candidate
	for _, said := range reports {
		r, ok := readReport(said.Body, g.c.N, len(g.layers))
		if !ok {
			continue // none of ours
		}
		if !r.leaving {
			d.next.Members.Add(said.From)
			d.lives[said.From] = r.life
		}
		for id := range r.exclude.All() {
			d.excluded.Add(id)
		}
		learners = append(learners, r.learner...)
		for i, layer := range r.layers {
			of[i] = append(of[i], layer)
		}
	}
	for _, c := range learners {
		if !d.next.Members.Has(c.id) || c.life > d.lives[c.id] {
			d.next.Members.Add(c.id)
			d.lives[c.id] = c.life
		}
	}
	// Nobody is left out if nobody would be left.
	if rest := d.next.Members.Minus(d.excluded); rest != (parley.Set{}) {
		d.next.Members = rest
	} else {
		d.excluded = parley.Set{}
	}
	for i, layer := range g.layers {
		d.cuts = append(d.cuts, layer.Cut(of[i]))
	}
	return d.encode()
}

// unreadable tells whether a message of the ballot brings a value that no member
// would have chosen.
func (g *machine) unreadable(m parley.Msg) bool {
	value, brings := ballot.Value(m)
	if !brings {
		return false
	}
	d, ok := readDecision(value, g.c.N, len(g.layers))
	return !ok || d.next.Number != g.view.Number+1 || !g.readable(d)
}

func (g *machine) readable(d decision) bool {
	for i, layer := range g.layers {
		if r, ok := layer.(Reader); ok && !r.Reads(d.cuts[i]) {
			return false
		}
	}
	return true
}

// Decided is upon decided(value) in view v. What the ballot appended is durable.
func (g *machine) Decided(s *parley.Step, from parley.ID, value []byte) {
	d, ok := readDecision(value, g.c.N, len(g.layers))
	if !ok {
		panic("group: the decision on a view cannot be read")
	}
	// send DECIDE(v, value) to all of M, so that it precedes what this member sends in
	// view v+1 on each link. Joiners hear from their sponsors.
	if from != g.self {
		g.ballot.Inform(s, g.view.Members.Minus(parley.SetOf(from)))
	}
	// learner in next: before the cut is delivered send INSTALL to it
	g.admit(s, d, value)
	// self not in next: stop for ever
	if !d.has(candidate{g.self, g.life}) {
		g.stop(s, d.excluded.Has(g.self))
		return
	}
	g.enter(s, d, value)
	g.takeAlong(s, value)
	g.open(s)
}

// enter: deliver the cut, layer by layer; install v+1: all counters of the layers
// := 0, frozen := false; indicate the view.
func (g *machine) enter(s *parley.Step, d decision, value []byte) {
	g.disarm(s)
	g.view, g.lives, g.founding = d.next, d.lives, value
	g.newBallot()
	g.frozen, g.gap, g.stale, g.tried, g.due, g.flush = false, false, false, false, 0, 0
	g.entered = g.now
	for i, cut := range d.cuts {
		if value == nil {
			cut = nil
		} else if cut == nil {
			cut = []byte{}
		}
		g.within(s, i, func(l Layer) { l.Install(s, cut, g.view) })
	}
	g.stuck, g.looked, g.blocked = stall{g.position, g.now}, g.now, false
	for i := range g.unsent {
		g.unsent[i] = stall{0, g.now}
	}
	g.watch()
	s.Indicate(parley.Msg{
		Kind: parley.View, Seq: g.view.Number, Value: g.position, Body: problem.AppendSet(nil, g.view.Members),
	})
	for id := range d.excluded.All() {
		s.Indicate(parley.Msg{Kind: Excluded, Origin: id})
	}
	g.exclude = g.exclude.Minus(d.excluded)
}

// watch begins to listen to the members. Those of the view before have reported,
// which is as good as heartbeats in a row.
func (g *machine) watch() {
	g.monitor.Watch(g.now, g.view.Members)
	for id := range g.monitor.Watched().All() {
		for range g.c.Detector.Again {
			g.monitor.Heard(g.now, id)
		}
	}
	g.told, g.gone = parley.Set{}, parley.Set{}
}

// open: send queued requests.
func (g *machine) open(s *parley.Step) {
	queue := g.queue
	g.queue = nil
	for _, m := range queue {
		g.ask(s, m)
	}
}

// stop: no sends, no deliveries, no answers. Nothing is kept but who it was.
func (g *machine) stop(s *parley.Step, excluded bool) {
	asked := uint64(0)
	switch {
	case g.leaving:
		asked = 1
	case excluded:
		asked = 2
	}
	again := g.c.Return && asked == 0
	g.disarm(s)
	g.forget()
	g.stage = out
	s.Indicate(parley.Msg{Kind: Out, Value: asked})
	if again {
		g.join(s)
	}
}

// forget leaves nothing of the process but its number, its incarnation, and how far that
// it has delivered.
func (g *machine) forget() {
	fresh := newMachine(g.c, g.self, g.services)
	fresh.life, fresh.last, fresh.now = g.life, g.last, g.now
	*g = *fresh
	g.newBallot() // whose owner is this machine, not the fresh one
}

// leave is a request to be left out of the next view. Who is not in a view is out.
func (g *machine) leave(s *parley.Step) {
	g.leaving = true
	if g.stage == joining {
		g.stop(s, false)
		return
	}
	g.consider(s)
}

// excluding is a request to leave a member out.
func (g *machine) excluding(s *parley.Step, id parley.ID) {
	if g.stage == member && id != g.self && g.view.Members.Has(id) {
		g.exclude.Add(id)
		g.consider(s)
	}
}
