package group

import (
	"slices"

	"parley"
	"parley/agreement/ballot"
)

// When a member asks for another view, and how it goes about it: the member of the
// lowest rank that is not suspected at once, the others if that does not help.

// period is what a member does once a period.
func (g *machine) period(s *parley.Step) {
	g.monitor.Links(g.now)
	g.askAgain(s)
	g.beat(s)
	g.indicate(s, g.monitor.Check(g.now))
	g.indicate(s, g.monitor.Cut())
	g.progress()
	g.forsake()
	g.consider(s)
}

// beat sends a sign of life to all members.
func (g *machine) beat(s *parley.Step) {
	word := g.monitor.Word()
	for id := range g.view.Members.All() {
		if id != g.self {
			g.send(s, id, parley.Msg{Kind: Beat, Body: word})
		}
	}
}

func (g *machine) indicate(s *parley.Step, suspected parley.Set) {
	for id := range suspected.All() {
		s.Indicate(parley.Msg{Kind: parley.Suspect, Origin: id})
	}
}

// links lets the members hear at once which links of this one are broken, if that has changed.
func (g *machine) links(s *parley.Step) {
	if g.stage == member && g.monitor.Links(g.now) {
		g.beat(s)
		g.cut(s)
	}
}

// mended ends the view if something waits: the link that broke may have lost what it waits
// for, and would be found out a retry later. All who are there are in the next view.
func (g *machine) mended(s *parley.Step, q parley.ID) {
	waits := slices.ContainsFunc(g.layers, func(l Layer) bool {
		own, sends := l.(Sender)
		return l.Waiting() || sends && own.Oldest() > 0
	})
	if g.stage == member && g.view.Members.Has(q) && !g.frozen && waits {
		g.blocked = true
		g.propose(s)
	}
}

// cut asks for another view if more than half of all have lost their links with a member.
func (g *machine) cut(s *parley.Step) {
	if suspected := g.monitor.Cut(); suspected != (parley.Set{}) {
		g.indicate(s, suspected)
		g.consider(s)
	}
}

// progress looks whether anything is delivered while something waits for it, and
// whether what this member has sent goes on. A process that was paused knows nothing of
// the time that it missed.
func (g *machine) progress() {
	idle := g.frozen || g.now-g.looked > g.c.Detector.Period+g.c.Detector.Late
	g.looked, g.blocked = g.now, false
	look := func(w *stall, waits bool, mark uint64) {
		if idle || !waits || w.mark != mark {
			*w = stall{mark, g.now}
		}
		g.blocked = g.blocked || g.now-w.since >= g.c.Wait
	}
	waiting := false
	for i, layer := range g.layers {
		waiting = waiting || layer.Waiting()
		if l, ok := layer.(Sender); ok {
			oldest := l.Oldest()
			look(&g.unsent[i], oldest > 0, oldest)
		}
	}
	look(&g.stuck, waiting, g.position)
}

// suspect is a suspicion that somebody else has: a detector beneath, or the host. A
// sign of life takes it back as long as nothing is decided.
func (g *machine) suspect(s *parley.Step, q parley.ID) {
	if g.stage == member && q != g.self && g.view.Members.Has(q) {
		g.told.Add(q)
		g.consider(s)
	}
}

// suspected returns the members that this one takes to have failed.
func (g *machine) suspected() parley.Set {
	all := g.gone
	for id := range g.told.All() {
		all.Add(id)
	}
	for id := range g.monitor.Suspected().All() {
		all.Add(id)
	}
	return all
}

// needed tells whether the view must end: upon suspecting a member, an own message
// undelivered for T, frozen for T, a gap on a link, a learner that has caught up, a request
// to leave or to leave another one out, if a majority of all processes is left then.
func (g *machine) needed() bool {
	outside := g.view.Members.Minus(g.suspected())
	return outside != g.view.Members ||
		g.frozen && (g.gap || g.now-g.since >= g.c.Wait) ||
		!g.frozen && g.blocked ||
		slices.ContainsFunc(g.learners, func(l learner) bool { return l.ready }) ||
		(g.leaving || g.view.Members.Minus(g.exclude) != g.view.Members) && g.view.Members.Len() > g.majority()
}

// lowest tells whether all members of a lower rank are suspected, and rank which
// one this member has.
func (g *machine) lowest() (lowest bool, rank int) {
	lowest = true
	suspected := g.suspected()
	for id := range g.view.Members.All() {
		if id == g.self {
			return lowest, rank
		}
		lowest = lowest && suspected.Has(id)
		rank++
	}
	return false, rank
}

// consider starts a ballot if the view must end and it is this member's turn.
func (g *machine) consider(s *parley.Step) {
	if g.stage != member {
		return
	}
	if !g.needed() {
		// A ballot that is under way goes on: the members are frozen.
		g.due, g.tried = 0, false
		g.vote(s, func(b *ballot.Instance) { b.Reconsider(s) })
		return
	}
	lowest, rank := g.lowest()
	if g.due == 0 {
		g.wait = g.c.Wait + parley.Tick(rank)*g.c.Stagger
		g.due = g.now + g.wait
	}
	late := g.now >= g.due
	if late {
		g.wait = min(2*g.wait, g.patience(rank))
		g.due = g.now + g.wait
	}
	if late || lowest && !g.tried {
		g.propose(s)
		return
	}
	g.vote(s, func(b *ballot.Instance) { b.Reconsider(s) })
}

// propose starts a ballot of this member.
func (g *machine) propose(s *parley.Step) {
	g.tried = true
	g.flush = g.now + g.c.Flush
	g.vote(s, func(b *ballot.Instance) { b.Propose(s) })
}
