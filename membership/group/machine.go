package group

import (
	"parley"
	"parley/agreement/ballot"
	"parley/membership/detector"
)

// tick is the timer of the group's periodic checks of all its times.
const tick parley.Timer = 1

// grace is the timer for links that have been broken for some time.
const grace parley.Timer = 2

// machine is one process: it joins, is a member of consecutive views, and is out.
type machine struct {
	membership
	joiner joiner
	queue  []parley.Msg // requests for the next view
}

func newMachine(self parley.ID, c *Config, services []LayerSpec) *machine {
	g := &machine{membership: newMembership(self, c, services)}
	g.owner = g
	g.newBallot()
	return g
}

// Start: the first members install view 1. A process that restarts resumes from its log in durable mode, and
// otherwise joins.
func (g *machine) Start(s *parley.Step) {
	g.now = s.Now
	initial := g.c.Initial.Has(g.own.id)
	switch {
	case s.Restart && g.c.Durable:
		g.resume(s)
	case s.Restart || !initial:
		g.blank(s)
		g.join(s)
	default:
		g.remember(s) // so that a restart that finds no log has lost its disk
		g.begin(s)
	}
	s.SetTimer(tick, 1+g.c.Detector.Period*parley.Tick(g.own.id)/parley.Tick(g.c.N))
}

// begin installs view 1.
func (g *machine) begin(s *parley.Step) {
	g.stage, g.own.disk = member, 1
	d := decision{next: roster{View{1, g.c.Initial}, g.lives, g.disks}, cuts: make([][]byte, len(g.layers.list))}
	for id := range g.c.Initial.All() {
		d.next.disks[id] = 1
	}
	g.enter(s, d, nil)
}

// Request handles requests to the group, and passes others to a layer, now or in the next view.
func (g *machine) Request(s *parley.Step, m parley.Msg) {
	g.now = s.Now
	switch {
	case m.Kind == detector.Broke:
		g.suspicions.monitor.Broke(g.now, m.Origin)
		s.SetTimer(grace, g.c.Detector.Grace)
	case m.Kind == detector.Mended:
		g.suspicions.monitor.Mended(m.Origin)
		g.links(s)
		g.mended(s, m.Origin)
	case g.stage == out:
	case m.Kind == Leave:
		g.leave(s)
	case m.Kind == State:
		if g.stage == member {
			g.answerSnapshot(s, g.view.Number, m)
		}
	case m.Kind == Exclude:
		g.excluding(s, m.Origin)
	case len(m.Body) > g.c.Payload:
		s.Refuse(g.own.id, "request that is too long")
	case g.stage == joining || g.frozen:
		if len(g.queue) >= g.c.Queue {
			s.Refuse(g.own.id, "too many requests for the next view")
			return
		}
		g.queue = append(g.queue, m)
	default:
		g.ask(s, g.view.Number, m)
	}
}

// leave is the request to be removed from the next view. A process that is in no view stops at once.
func (g *machine) leave(s *parley.Step) {
	g.leaving = true
	if g.stage == joining {
		g.stop(s, false)
		return
	}
	g.consider(s)
}

// Receive handles a message of a link, or a suspicion of a layer beneath.
func (g *machine) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	g.now = s.Now
	child, before := int(s.Pop(g.layers.bits)), g.view.Number
	switch {
	case m.Kind == parley.Suspect:
		g.suspect(s, m.Origin)
	case m.Kind >= parley.Local || g.stage == out:
	case int(from) >= g.c.N || from == g.own.id || child > len(g.layers.list):
		s.Refuse(from, "message of nobody, or for nobody")
	case g.stage == joining:
		g.learn(s, from, child, m)
	default:
		g.hear(s, from, child, m)
	}
	if g.view.Number > before {
		g.catchUp(s)
	}
}

// hear handles a message at a member.
func (g *machine) hear(s *parley.Step, from parley.ID, child int, m parley.Msg) {
	u := uint64(s.Epoch)
	switch {
	case child == 0 && m.Kind == Join:
		g.sponsor(s, from, m)
	case child == 0 && m.Kind == Ready:
		g.ready(s, from, m)
	case u < g.view.Number:
		// It shows that the member is alive, even if it is not yet in this view.
		g.suspicions.monitor.Heard(g.now, from)
		if child == 0 {
			g.late(s, from, m)
		}
	// upon DECIDE of a later view: this one has ended without this member: stop
	case u > g.view.Number && child == 0 && m.Kind == ballot.Decision:
		if g.follows(s, from, m) {
			g.stop(s, false)
		}
	// of a later view: ask what ended this one, and drop
	case u > g.view.Number:
		g.inquire(s, from)
	case child == 0 && m.Kind <= ballot.Last:
		g.ballots(s, from, m)
	case child == 0 && m.Kind == DecisionQuery && g.c.Liars > 0:
		g.vote(s, func(b *ballot.Instance) { b.Repeat(s, from) })
	case !g.view.Members.Has(from):
		s.Refuse(from, "message of no member")
	default:
		g.present(s, from, child, m)
	}
}

// follows adopts the decision on a view that does not include this process, and reports whether the view was
// new. The decision is durable before the process votes on the end of that view.
func (g *machine) follows(s *parley.Step, from parley.ID, m parley.Msg) bool {
	d, ok := g.layers.read(m.Body)
	if !ok || d.next.view.Number != uint64(s.Epoch)+1 {
		s.Refuse(from, "decision that cannot be read")
		return false
	}
	if d.next.view.Number <= g.view.Number || !g.believes(s, from, d.next.view.Number, m.Body) {
		return false
	}
	if g.c.Durable {
		s.Append(append([]byte{foundKind}, m.Body...))
	}
	g.adopt(d, m.Body)
	return true
}

// Decided is upon decided(value) in view v. What the ballot appended is durable.
func (g *machine) Decided(s *parley.Step, from parley.ID, value []byte) {
	d, ok := g.layers.read(value)
	if !ok {
		panic("group: the decision on a view cannot be read")
	}
	// send DECIDE(v, value) to all of M, so that it precedes what this member sends in view v+1 on each link.
	// Joiners receive it from their sponsors.
	if from != g.own.id {
		g.ballot.Inform(s, g.view.Members.Minus(parley.SetOf(from)))
	}
	// learner in next: before the cut is delivered send INSTALL to it
	g.admit(s, g.view.Number, d, value)
	// self not in next: stop for good, unless it has restarted since the exclusion may have been requested
	if !d.next.has(g.own) {
		g.adopt(d, value)
		g.stop(s, d.excluded.Has(g.own.id) && !g.resumed)
		return
	}
	g.enter(s, d, value)
	g.advanceLearners(s, g.view.Number, value)
	g.open(s)
}

// open: send queued requests.
func (g *machine) open(s *parley.Step) {
	if g.frozen {
		return
	}
	queue := g.queue
	g.queue = nil
	for _, m := range queue {
		g.ask(s, g.view.Number, m)
	}
}

// stop: no sends, no deliveries, no answers. It keeps only the identity of the process and its votes.
func (g *machine) stop(s *parley.Step, excluded bool) {
	asked := uint64(0)
	switch {
	case g.leaving:
		asked = 1
	case excluded:
		asked = 2
	}
	again := g.c.Return && asked == 0
	g.layers.disarm(s)
	g.forget()
	g.stage = out
	s.Indicate(parley.Msg{Kind: Excluded, Value: asked})
	if again {
		g.join(s)
	}
}

// forget resets all but the identity of the process and its votes.
func (g *machine) forget() {
	fresh := newMembership(g.own.id, g.c, g.layers.services)
	fresh.voter = g.voter
	fresh.entered, fresh.claims.asked = 0, parley.Set{}
	*g = machine{membership: fresh}
}

// Timeout handles the timers of layers and the group's periodic work.
func (g *machine) Timeout(s *parley.Step, t parley.Timer) {
	g.now = s.Now
	if child := int(s.Pop(g.layers.bits)); child > 0 {
		if set := g.layers.expired(child-1, t); set && g.stage == member && !g.frozen {
			g.run(s, g.view.Number, child-1, func(l Layer) { l.Timeout(s, t) })
		}
		return
	}
	if t == grace {
		g.links(s)
		return
	}
	switch g.stage {
	case joining:
		// a joiner that has waited for too long asks another process
		if g.askAgain(s); g.joiner.over(g.now, g.c) {
			g.join(s)
		}
	case member:
		before := g.history.position
		g.period(s)
		g.compact(s, before)
	}
	if g.stage != out {
		s.SetTimer(tick, g.c.Detector.Period)
	}
}
