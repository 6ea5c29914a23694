package group

import (
	"parley"
	"parley/agreement/ballot"
	"parley/membership/detector"
)

// membership is the state of a process across the views that it is in, from the moment it becomes a member
// until it is no longer one.
type membership struct {
	voter
	sequence
	frozen     bool        // it has reported
	since      parley.Tick // when it reported
	gap        bool        // a link has lost something
	resumed    bool        // it has restarted in this view
	suspicions suspicions
	progress   progress
	tries      tries
	leaving    bool
	exclude    parley.Set // members that this one wants excluded
}

func newMembership(self parley.ID, c *Config, services []LayerSpec) membership {
	return membership{
		voter: voter{
			c: c, own: joinCandidate{id: self}, claims: newClaims(c.N, c.Liars),
			roster: roster{lives: make([]uint64, c.N), disks: make([]uint64, c.N)},
		},
		sequence: sequence{
			layers:  newLayers(services, self, c.N, c.Durable),
			history: history{maxCount: c.Keep, maxBytes: c.KeepBytes},
		},
		suspicions: suspicions{monitor: detector.NewMonitor(c.Detector, self)},
		progress:   progress{unsent: make([]progressMark, len(services))},
	}
}

// present handles a message of this view from a member.
func (g *membership) present(s *parley.Step, from parley.ID, child int, m parley.Msg) {
	g.suspicions.heard(g.now, from)
	switch {
	case child > 0:
		// while frozen: ignore all data messages and acknowledgements of the view
		if !g.frozen && g.receive(s, g.view.Number, child-1, from, m) {
			g.freeze()
			g.gap = true
			g.consider(s)
		}
	case m.Kind == Beat && g.suspicions.monitor.Said(from, m.Body):
		g.cut(s)
	case m.Kind != DecisionQuery:
		s.Refuse(from, "message that does not fit")
	}
}

// freeze fixes the report, and with it what this member has done in this view.
func (g *membership) freeze() {
	if !g.frozen {
		g.frozen, g.since = true, g.now
	}
}

// ballots handles a message, of any process, of the ballot that ends this view.
func (g *membership) ballots(s *parley.Step, from parley.ID, m parley.Msg) {
	if value, brings := ballot.Value(m); brings && !g.acceptable(value) {
		s.Refuse(from, "decision that cannot be read")
		return
	}
	g.suspicions.heard(g.now, from)
	if m.Kind == ballot.Decision && !g.ballot.Took(m.Body) && !g.believes(s, from, g.view.Number+1, m.Body) {
		return
	}
	g.vote(s, func(b *ballot.Instance) { b.Receive(s, from, m) })
}

// acceptable reports whether a correct member could have chosen value.
func (g *membership) acceptable(value []byte) bool {
	d, ok := g.layers.read(value)
	return ok && d.next.view.Number == g.view.Number+1 && g.sane(&d, g.c.Liars)
}

// Report: pending of each layer with bodies and the key of its last delivery, the learners that have caught
// up, and whether this member leaves. A process that is not in the view votes with an empty report.
func (g *membership) Report() []byte {
	if g.stage != member {
		return nil
	}
	g.freeze()
	return report{
		life: g.own.life, leaving: g.leaving, exclude: g.exclude,
		learners: g.learners.ready(), layers: g.layers.reports(),
	}.encode()
}

// Enough: every member that is not suspected is among the voters, or the flush timer ran out; and the reporters
// and the learners together are a majority of all processes. A process that has not reported cannot be kept:
// messages that it alone has would be lost.
func (g *membership) Enough(voted []ballot.Report) bool {
	missing := g.view.Members.Minus(g.suspicions.all())
	for _, said := range voted {
		missing.Remove(said.From)
	}
	if missing != (parley.Set{}) && g.now < g.tries.flush {
		return false
	}
	d, _ := g.following(voted)
	return d.next.view.Members.Len() >= g.majority() && g.sane(&d, g.c.Liars)
}

// Choose returns the next view, and one cut per layer.
func (g *membership) Choose(voted []ballot.Report) []byte {
	d, reports := g.following(voted)
	d.cuts = g.layers.cuts(reports)
	return d.encode()
}

// following returns the next view, and the reports that make it.
func (g *membership) following(voted []ballot.Report) (decision, []report) {
	reports := g.reports(voted, len(g.layers.list), g.c.Liars)
	return g.next(reports, g.exclude, g.c.Liars), reports
}

// enter: deliver the cut, layer by layer; install v+1: all counters of the layers
// := 0, frozen := false; indicate the view.
func (g *membership) enter(s *parley.Step, d decision, value []byte) {
	g.layers.disarm(s)
	if g.view.Number != d.next.view.Number {
		g.adopt(d, value)
	}
	g.steady = g.c.Liars > 0 && !s.Restart
	// A joiner may have voted, with an empty report, on how the view ends.
	g.ballot.Refresh()
	g.frozen = g.ballot.Promised()
	g.gap, g.resumed, g.tries = g.frozen, false, tries{}
	if g.entered = g.now; g.frozen {
		g.since = g.now
	}
	for i, cut := range d.cuts { // nil only in the first view; decoded cuts are not nil
		g.run(s, g.view.Number, i, func(l Layer) { l.Install(s, cut, g.view) })
	}
	g.progress.begin(g.now, g.history.position)
	g.suspicions.begin(g.now, g.view.Members, g.c.Detector.Again)
	s.Indicate(parley.Msg{
		Kind: parley.View, Seq: g.view.Number, Value: g.history.position, Body: parley.AppendSet(nil, g.view.Members),
	})
	if !s.Restart { // the log holds the past: who was excluded may have returned
		for id := range d.excluded.All() {
			s.Indicate(parley.Msg{Kind: Expelled, Origin: id})
		}
	}
	g.exclude = g.exclude.Minus(d.excluded)
}

// viewState visits what is forgotten with the view, except for the layers.
func (g *membership) viewState(v *parley.Vars) {
	v.Bool("frozen", &g.frozen)
	v.Time("since", &g.since)
	v.Time("entered", &g.entered)
	v.Bool("gap", &g.gap)
	v.Bool("resumed", &g.resumed)
	g.suspicions.State(v)
	g.progress.State(v)
	g.tries.State(v, g.ballot.Started())
	v.Bool("leaving", &g.leaving)
	v.Set("exclude", &g.exclude)
	g.learners.State(v)
	g.layers.timersState(v)
}
