package group

import (
	"parley"
	"parley/agreement/ballot"
)

// When and how a member asks for another view.

// period does a member's periodic work.
func (g *membership) period(s *parley.Step) {
	monitor := &g.suspicions.monitor
	monitor.Links(g.now)
	g.askAgain(s)
	g.beat(s)
	indicate(s, monitor.Check(g.now))
	indicate(s, monitor.Cut())
	g.progress.look(g.now, g.c, g.frozen, &g.layers, g.history.position)
	// drop a learner that does not answer
	g.learners.drop(func(l learner) bool { return !l.ready && g.now-l.since > 2*g.c.Admit })
	g.consider(s)
}

// beat sends a heartbeat to all members.
func (g *membership) beat(s *parley.Step) {
	word := g.suspicions.monitor.Word()
	for id := range g.view.Members.All() {
		if id != g.own.id {
			send(s, g.view.Number, id, parley.Msg{Kind: Beat, Body: word})
		}
	}
}

func indicate(s *parley.Step, suspected parley.Set) {
	for id := range suspected.All() {
		s.Indicate(parley.Msg{Kind: parley.Suspect, Origin: id})
	}
}

// links reports to the members at once which links of this one are broken, if that has changed.
func (g *membership) links(s *parley.Step) {
	if g.stage == member && g.suspicions.monitor.Links(g.now) {
		g.beat(s)
		g.cut(s)
	}
}

// mended ends the view if something waits: the broken link may have lost what it waits for, and without this
// it would take a retry to notice. All reachable members are in the next view.
func (g *membership) mended(s *parley.Step, q parley.ID) {
	if g.stage == member && g.view.Members.Has(q) && !g.frozen && g.layers.unfinished() {
		g.progress.blocked = true
		g.propose(s)
	}
}

// cut asks for another view if more than half of all processes have lost their links with a member.
func (g *membership) cut(s *parley.Step) {
	if suspected := g.suspicions.monitor.Cut(); suspected != (parley.Set{}) {
		indicate(s, suspected)
		g.consider(s)
	}
}

// suspect handles a suspicion of another detector: one beneath, or the host. A heartbeat revokes it as long
// as nothing is decided.
func (g *membership) suspect(s *parley.Step, q parley.ID) {
	if g.stage == member && q != g.own.id && g.view.Members.Has(q) {
		g.suspicions.reported.Add(q)
		g.consider(s)
	}
}

// excluding handles a request to exclude a member.
func (g *membership) excluding(s *parley.Step, id parley.ID) {
	if g.stage == member && id != g.own.id && g.view.Members.Has(id) {
		g.exclude.Add(id)
		g.consider(s)
	}
}

// needed reports whether the view must end: upon suspecting a member, an own message undelivered for T,
// frozen for T, a gap on a link, a learner that has caught up, a request to leave or to exclude another
// member, if a majority of all processes is left then.
func (g *membership) needed() bool {
	outside := g.view.Members.Minus(g.suspicions.all())
	return outside != g.view.Members ||
		g.frozen && (g.gap || g.now-g.since >= g.c.Wait) ||
		!g.frozen && g.progress.blocked ||
		len(g.learners.ready()) > 0 ||
		(g.leaving || g.view.Members.Minus(g.exclude) != g.view.Members) && g.view.Members.Len() > g.majority()
}

// rank returns the rank of this member, and whether all members of a lower rank are suspected.
func (g *membership) rank() (rank int, lowest bool) {
	lowest = true
	suspected := g.suspicions.all()
	for id := range g.own.id {
		if g.view.Members.Has(id) {
			rank, lowest = rank+1, lowest && suspected.Has(id)
		}
	}
	return rank, lowest
}

// consider starts a ballot if the view must end and it is this member's turn. A ballot in progress continues,
// needed or not: the members are frozen.
func (g *membership) consider(s *parley.Step) {
	if !g.needed() {
		g.tries.due, g.tries.tried = 0, false
	} else if rank, lowest := g.rank(); g.tries.turn(g.now, g.c, rank, lowest) {
		g.propose(s)
		return
	}
	g.vote(s, func(b *ballot.Instance) { b.Reconsider(s) })
}

// propose starts a ballot of this member.
func (g *membership) propose(s *parley.Step) {
	g.tries.tried = true
	g.tries.flush = g.now + g.c.Flush
	g.vote(s, func(b *ballot.Instance) { b.Propose(s) })
}
