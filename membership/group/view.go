package group

import (
	"slices"

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
		return e.Op == parley.OpAppend && e.Path == 0 && !g.c.Durable
	})
}

// freeze: the report is fixed, and with it what this member has done in this view.
func (g *machine) freeze() {
	if !g.frozen {
		g.frozen, g.since = true, g.now
	}
}

// Report: pending of each layer with bodies and the key of its last delivery, the
// learners that have caught up, and whether this member leaves. A process that is not in
// the view has nothing to report, and votes.
func (g *machine) Report() []byte {
	if g.stage != member {
		return nil
	}
	g.freeze()
	r := report{life: g.life, leaving: g.leaving, exclude: g.exclude}
	for _, l := range g.learners {
		if l.ready {
			r.learners = append(r.learners, l.candidate)
		}
	}
	for _, layer := range g.layers {
		r.layers = append(r.layers, layer.Report())
	}
	return r.encode()
}

// Enough: every member that is not suspected is among those who voted, or the flush timer
// ran out; and those who reported are with the learners a majority of all processes. Nobody
// outside can be kept: its messages that it alone has would be lost.
func (g *machine) Enough(reports []ballot.Report) bool {
	missing := g.view.Members.Minus(g.suspected())
	for _, said := range reports {
		missing.Remove(said.From)
	}
	if missing != (parley.Set{}) && g.now < g.flush {
		return false
	}
	d, _ := g.next(reports)
	return d.next.Members.Len() >= g.majority() && g.sane(d)
}

// Choose: the next view, and one cut per layer.
func (g *machine) Choose(reports []ballot.Report) []byte {
	d, of := g.next(reports)
	for i, layer := range g.layers {
		d.cuts = append(d.cuts, layer.Cut(of[i]))
	}
	return d.encode()
}

// next := {r in S: not leaving} and the learners named in the reports, and the reports by
// layer. A reporter is alive, suspected or not. As many are left out who leave, or whom
// others want out, as leave a majority of all processes.
func (g *machine) next(reports []ballot.Report) (d decision, of [][][]byte) {
	d = decision{next: View{Number: g.view.Number + 1}, lives: make([]uint64, g.c.N), disks: slices.Clone(g.disks)}
	of = make([][][]byte, len(g.layers))
	var learners []candidate
	var leaving, exclude parley.Set
	wanted := make([]int, g.c.N) // by process: by how many reports out of the view
	for _, said := range reports {
		r, ok := readReport(said.Body, g.c.N, len(g.layers))
		if !ok || !g.plausible(said.From, r) {
			continue // not in the view, or none of ours
		}
		d.next.Members.Add(said.From)
		d.lives[said.From] = r.life
		if r.leaving {
			leaving.Add(said.From)
		}
		for id := range r.exclude.All() {
			wanted[id]++
		}
		learners = append(learners, r.learners...)
		for i, layer := range r.layers {
			of[i] = append(of[i], layer)
		}
	}
	for id, times := range wanted {
		if times > g.c.Liars || times > 0 && g.exclude.Has(parley.ID(id)) {
			exclude.Add(parley.ID(id))
		}
	}
	for _, c := range learners {
		if !d.next.Members.Has(c.id) || c.after(candidate{c.id, d.disks[c.id], d.lives[c.id]}) {
			d.next.Members.Add(c.id)
			d.lives[c.id], d.disks[c.id] = c.life, c.disk
			leaving.Remove(c.id)
		}
	}
	for _, out := range []parley.Set{leaving, exclude} {
		for id := range out.All() {
			if d.next.Members.Has(id) && d.next.Members.Len() > g.majority() {
				d.next.Members.Remove(id)
				d.lives[id] = 0
				if g.c.Liars > 0 {
					d.disks[id] = g.disks[id] // who is not let in has the disk that it had
				}
			}
		}
	}
	d.excluded = exclude.Minus(d.next.Members)
	return d, of
}

// unreadable tells whether a message of the ballot brings a value that no member
// would have chosen.
func (g *machine) unreadable(m parley.Msg) bool {
	value, brings := ballot.Value(m)
	if !brings {
		return false
	}
	d, ok := readDecision(value, g.c.N, len(g.layers))
	return !ok || d.next.Number != g.view.Number+1 || !g.readable(d) || !g.sane(d)
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
	if !d.has(g.own()) {
		g.adopt(d, value)
		g.stop(s, d.excluded.Has(g.self))
		return
	}
	g.enter(s, d, value)
	g.takeAlong(s, value)
	g.open(s)
}

// adopt: this is now the last view that the process knows of.
func (g *machine) adopt(d decision, value []byte) {
	g.renamed(d)
	g.view, g.lives, g.disks, g.founding = d.next, d.lives, d.disks, value
	g.newBallot()
}

// follows takes in how a view came about in which this process is not, and tells whether that
// was news. It is durable before the process votes on the end of that view.
func (g *machine) follows(s *parley.Step, from parley.ID, m parley.Msg) bool {
	d, ok := readDecision(m.Body, g.c.N, len(g.layers))
	if !ok || d.next.Number != uint64(s.Epoch)+1 || !g.readable(d) {
		s.Refuse(from, "decision that cannot be read")
		return false
	}
	if d.next.Number <= g.view.Number || !g.believes(s, from, d.next.Number, m.Body) {
		return false
	}
	if g.c.Durable {
		s.Append(append([]byte{foundKind}, m.Body...))
	}
	g.adopt(d, m.Body)
	return true
}

// outside is what a process that is in no view makes of the ballots of others: it votes on
// the end of the last view that there is, if it has the disk that is to vote.
func (g *machine) outside(s *parley.Step, from parley.ID, m parley.Msg) {
	switch u := uint64(s.Epoch); {
	case m.Kind == ballot.Decision:
		g.follows(s, from, m)
	case u < g.view.Number:
		g.late(s, from, 0, m)
	case u > g.view.Number:
		g.inquire(s, from)
	case (m.Kind == ballot.Prepare || m.Kind == ballot.Accept) && g.disks[g.self] == g.disk:
		g.ballots(s, from, m)
	}
}

// enter: deliver the cut, layer by layer; install v+1: all counters of the layers
// := 0, frozen := false; indicate the view.
func (g *machine) enter(s *parley.Step, d decision, value []byte) {
	g.disarm(s)
	if g.view.Number != d.next.Number {
		g.adopt(d, value)
	}
	g.steady = g.c.Liars > 0 && !s.Restart
	// Who joins may have voted on how the view ends, with nothing to report.
	g.ballot.Refresh()
	g.frozen = g.ballot.Promised()
	g.gap, g.tried, g.due, g.flush = g.frozen, false, 0, 0
	if g.entered = g.now; g.frozen {
		g.since = g.now
	}
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
	if g.frozen {
		return
	}
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

// forget leaves nothing of the process but who it is, and its votes.
func (g *machine) forget() {
	fresh := newMachine(g.c, g.self, g.services)
	fresh.disk, fresh.life, fresh.now = g.disk, g.life, g.now
	fresh.view, fresh.lives, fresh.disks, fresh.founding = g.view, g.lives, g.disks, g.founding
	fresh.claims, fresh.steady = g.claims, g.steady
	fresh.ballot = g.ballot // whose owner is this machine, not the fresh one
	*g = *fresh
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
