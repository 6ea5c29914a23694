package group

import (
	"slices"

	"parley"
	"parley/agreement/ballot"
	"parley/broadcast/problem"
	"parley/membership/detector"
)

// stage is what a process is.
type stage uint8

const (
	joining stage = iota
	member
	out // for ever, unless it returns as a new incarnation
)

// tick is the timer that all times of the group are looked at with, once a period.
const tick parley.Timer = 1

// grace is the timer for links that have been broken for some time.
const grace parley.Timer = 2

// machine is one process.
type machine struct {
	c        Config
	self     parley.ID
	services []Service
	layers   []Layer
	bits     int         // of a path, that name a layer
	now      parley.Tick // scratch: of the present clause

	stage    stage
	disk     uint64 // which disk, or memory, this process has: the first of a first member is 1
	life     uint64 // the incarnation: how often it has asked to join, and more
	position uint64 // deliveries so far, those of the sponsor before it joined too

	// Of the view. Of a process that joins it is the last one that it knows of, on whose
	// end it votes.
	view     View
	lives    []uint64         // by process: the incarnations of the members
	disks    []uint64         // by process: the disk whose votes count; 0: none has been let in
	founding []byte           // the decision that made the view, for those who missed it
	ballot   *ballot.Instance // on how the view ends
	frozen   bool             // the report is given
	since    parley.Tick      // when it was
	entered  parley.Tick      // when the view was
	gap      bool             // a link has lost something

	// When to ask for another view.
	monitor detector.Monitor
	told    parley.Set  // suspected on somebody else's word
	gone    parley.Set  // members that have come back as other incarnations
	due     parley.Tick // the next try; 0 while nobody needs another view
	wait    parley.Tick // between this try and the one after
	tried   bool        // since the need arose
	flush   parley.Tick // until when to wait for the members that are not suspected
	leaving bool
	exclude parley.Set  // whom this member wants to be left out
	stuck   stall       // by its position: nothing is delivered while something waits
	unsent  []stall     // by layer: the oldest message of its own is not finished
	looked  parley.Tick // when that was looked at last
	blocked bool        // that has been so for too long
	asked   parley.Set  // in this period, for what was missed
	claims  []claim     // by process, with Liars: what it said last of how a view came about
	steady  bool        // with Liars: it has been a member since it last came back

	queue    []parley.Msg // requests for the next view
	armed    []timer
	learners []learner // by id
	joiner   joiner
	kept     []delivery // the last ones, up to the present position
	size     int        // scratch: of them; counted anew when loaded
	records  int        // since the log was compacted
}

// stall is something that ought to change.
type stall struct {
	mark  uint64      // what it was when it was looked at last
	since parley.Tick // and has been since
}

// timer is one that a layer has set.
type timer struct {
	layer  int
	number parley.Timer
}

func newMachine(c Config, self parley.ID, services []Service) *machine {
	g := &machine{
		c: c, self: self, services: services, bits: width(len(services)),
		lives: make([]uint64, c.N), disks: make([]uint64, c.N), monitor: detector.NewMonitor(c.Detector, self),
	}
	for _, service := range services {
		layer := service.New(self, c.N)
		if _, ok := layer.(Durable); c.Durable && !ok {
			panic("group: " + service.Name + " is not for durable mode")
		}
		g.layers = append(g.layers, layer)
	}
	g.unsent = make([]stall, len(g.layers))
	if c.Liars > 0 {
		g.claims = make([]claim, c.N)
	}
	g.newBallot()
	return g
}

// newBallot begins the instance that ends the present view. All processes vote, in the view or
// not, so that any two majorities share one, whatever views have been decided on.
func (g *machine) newBallot() {
	g.ballot = ballot.NewInstance(g.self, parley.Everyone(g.c.N), g)
	if g.c.Liars > 0 {
		g.ballot.Strict()
	}
}

// majority is how many processes are more than half of all. No view has fewer members.
func (g *machine) majority() int { return g.c.N/2 + 1 }

// own names this process as one that joins.
func (g *machine) own() candidate { return candidate{g.self, g.disk, g.life} }

// Start: the first members are in view 1. A process that comes back goes on from
// its log in durable mode, and otherwise joins.
func (g *machine) Start(s *parley.Step) {
	g.now = s.Now
	initial := g.c.Initial.Has(g.self)
	switch {
	case s.Restart && g.c.Durable:
		g.resume(s)
	case s.Restart || !initial:
		g.blank(s)
		g.join(s)
	default:
		g.remember(s) // a restart that finds nothing has lost its disk
		g.begin(s)
	}
	s.SetTimer(tick, 1+g.c.Detector.Period*parley.Tick(g.self)/parley.Tick(g.c.N))
}

// begin installs view 1.
func (g *machine) begin(s *parley.Step) {
	g.stage, g.disk = member, 1
	d := decision{next: View{1, g.c.Initial}, lives: g.lives, disks: g.disks, cuts: make([][]byte, len(g.layers))}
	for id := range g.c.Initial.All() {
		d.disks[id] = 1
	}
	g.enter(s, d, nil)
}

// blank is for a process that knows nothing of what it was. Its votes do not count before it
// has been let in.
func (g *machine) blank(s *parley.Step) { g.disk, g.life = 2+s.Life, s.Life }

// Request: of the group itself, or of a layer, now or in the next view.
func (g *machine) Request(s *parley.Step, m parley.Msg) {
	g.now = s.Now
	switch {
	case m.Kind == detector.Broke:
		g.monitor.Broke(g.now, m.Origin)
		s.SetTimer(grace, g.c.Detector.Grace)
	case m.Kind == detector.Mended:
		g.monitor.Mended(m.Origin)
		g.links(s)
		g.mended(s, m.Origin)
	case g.stage == out:
	case m.Kind == Leave:
		g.leave(s)
	case m.Kind == State:
		g.stateIs(s, m)
	case m.Kind == Exclude:
		g.excluding(s, m.Origin)
	case len(m.Body) > g.c.Payload:
		s.Refuse(g.self, "request that is too long")
	case g.stage == joining || g.frozen:
		if len(g.queue) >= g.c.Queue {
			s.Refuse(g.self, "too many requests for the next view")
			return
		}
		g.queue = append(g.queue, m)
	default:
		g.ask(s, m)
	}
}

// ask hands a request to the first layer that takes it.
func (g *machine) ask(s *parley.Step, m parley.Msg) {
	for i, service := range g.services {
		if slices.Contains(service.Requests, m.Kind) {
			g.within(s, i, func(l Layer) { l.Request(s, m) })
			return
		}
	}
	s.Refuse(g.self, "request that no layer takes")
}

// Receive is from a link, or a suspicion from beneath.
func (g *machine) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	g.now = s.Now
	child, before := int(s.Pop(g.bits)), g.view.Number
	switch {
	case m.Kind == parley.Suspect:
		g.suspect(s, m.Origin)
	case m.Kind >= parley.Local || g.stage == out:
	case int(from) >= g.c.N || from == g.self || child > len(g.layers):
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

// hear is what a member makes of a message.
func (g *machine) hear(s *parley.Step, from parley.ID, child int, m parley.Msg) {
	u := uint64(s.Epoch)
	switch {
	case child == 0 && m.Kind == Join:
		g.sponsor(s, from, m)
	case child == 0 && m.Kind == Ready:
		g.ready(s, from, m)
	case u < g.view.Number:
		g.late(s, from, child, m)
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
	case child == 0 && m.Kind == Ask && g.c.Liars > 0:
		g.vote(s, func(b *ballot.Instance) { b.Repeat(s, from) })
	case !g.view.Members.Has(from):
		s.Refuse(from, "message of no member")
	default:
		g.present(s, from, child, m)
	}
}

// present is a message of this view, from a member.
func (g *machine) present(s *parley.Step, from parley.ID, child int, m parley.Msg) {
	g.monitor.Heard(g.now, from)
	g.told.Remove(from)
	switch {
	case child > 0:
		// while frozen: ignore all data messages and acknowledgements of the view
		if !g.frozen && g.receive(s, child-1, from, m) {
			g.freeze()
			g.gap = true
			g.consider(s)
		}
	case m.Kind == Beat && g.monitor.Said(from, m.Body):
		g.cut(s)
	case m.Kind != Ask:
		s.Refuse(from, "message that does not fit")
	}
}

func (g *machine) receive(s *parley.Step, i int, from parley.ID, m parley.Msg) (gap bool) {
	g.within(s, i, func(l Layer) { gap = l.Receive(s, from, m) })
	return gap
}

// ballots is a message of the ballot that ends this view, of any process.
func (g *machine) ballots(s *parley.Step, from parley.ID, m parley.Msg) {
	if g.unreadable(m) {
		s.Refuse(from, "decision that cannot be read")
		return
	}
	g.monitor.Heard(g.now, from)
	g.told.Remove(from)
	if m.Kind == ballot.Decision && !g.ballot.Took(m.Body) && !g.believes(s, from, g.view.Number+1, m.Body) {
		return
	}
	g.vote(s, func(b *ballot.Instance) { b.Receive(s, from, m) })
}

// inquire asks, once in a period, what ended the view.
func (g *machine) inquire(s *parley.Step, from parley.ID) {
	if g.c.Liars == 0 && g.asked != (parley.Set{}) {
		return
	}
	if g.asked.Add(from) {
		g.send(s, from, parley.Msg{Kind: Ask})
	}
}

// late is a message of an earlier view. A process that does not know of this one is told
// how it came about: send DECIDE(v-1, founding decision). A member of the view before
// enters it by that, any other process votes on its end then. What it was asked when it
// could not vote it is asked again.
func (g *machine) late(s *parley.Step, from parley.ID, child int, m parley.Msg) {
	// It says of a member that it lives, if not yet in this view.
	g.monitor.Heard(g.now, from)
	if child > 0 || m.Kind != ballot.Prepare && m.Kind != ballot.Accept && m.Kind != Beat && m.Kind != Ask {
		return
	}
	// A beat of one who was told a moment ago may have crossed that, and what a member says
	// of a view longer ago was long on its way.
	last := uint64(s.Epoch)+1 == g.view.Number
	if g.founding == nil || m.Kind == Beat && g.now-g.entered < g.c.Detector.Timeout ||
		!last && m.Kind != Ask && g.view.Members.Has(from) {
		return
	}
	g.foundingTo(s, from)
	if m.Kind == Ask {
		g.vote(s, func(b *ballot.Instance) { b.Repeat(s, from) })
	}
}

// within runs a clause of a layer and carries what it asks for to its place.
func (g *machine) within(s *parley.Step, i int, clause func(Layer)) {
	mark := s.Mark()
	clause(g.layers[i])
	end := s.Mark()
	for k := mark; k < end; k++ {
		e := &s.Effects[k]
		child := parley.Path(i + 1)
		switch e.Op {
		case parley.OpSend:
			if e.To == parley.All {
				panic("group: " + g.services[i].Name + " sends to others than members")
			}
			e.Epoch, e.Path = uint32(g.view.Number), e.Path.Push(g.bits, child)
		case parley.OpDeliver:
			to, body, err := problem.Decode(e.Msg, g.c.N)
			if err != nil {
				panic("group: " + g.services[i].Name + " delivers what is for nobody: " + err.Error())
			}
			g.position++
			e.Msg = parley.Msg{Kind: parley.Carried, Origin: e.Msg.Origin, Seq: g.position, Body: body}
			g.keep(e.To, body)
			g.forward(s, to, e.To, e.Msg)
		case parley.OpSetTimer:
			g.armed = append(g.disarmed(i, e.Timer), timer{i, e.Timer})
			e.Path = e.Path.Push(g.bits, child)
		case parley.OpStopTimer:
			g.armed = g.disarmed(i, e.Timer)
			e.Path = e.Path.Push(g.bits, child)
		case parley.OpAppend:
			g.records++
			e.Path = e.Path.Push(g.bits, child)
		}
		// forward may have moved the effects: e is not used after it.
	}
}

// disarmed returns the timers without one.
func (g *machine) disarmed(i int, t parley.Timer) []timer {
	return slices.DeleteFunc(g.armed, func(a timer) bool { return a == timer{i, t} })
}

// disarm stops the timers of all layers: those of one view mean nothing in another.
func (g *machine) disarm(s *parley.Step) {
	for _, t := range g.armed {
		s.At(parley.Path(t.layer+1), 0, func() { s.StopTimer(t.number) })
	}
	g.armed = nil
}

// send sends a message of the group's own, as of this view.
func (g *machine) send(s *parley.Step, to parley.ID, m parley.Msg) {
	s.At(0, uint32(g.view.Number), func() { s.Send(to, m) })
}

// foundingTo tells a process how this view came about: the decision of the view before.
func (g *machine) foundingTo(s *parley.Step, to parley.ID) {
	s.At(0, uint32(g.view.Number-1), func() { s.Send(to, parley.Msg{Kind: ballot.Decision, Body: g.founding}) })
}

// Timeout: of a layer, or what the group does once a period.
func (g *machine) Timeout(s *parley.Step, t parley.Timer) {
	g.now = s.Now
	if child := int(s.Pop(g.bits)); child > 0 {
		armed := len(g.armed)
		g.armed = g.disarmed(child-1, t)
		if g.stage == member && !g.frozen && len(g.armed) < armed {
			g.within(s, child-1, func(l Layer) { l.Timeout(s, t) })
		}
		return
	}
	if t == grace {
		g.links(s)
		return
	}
	switch g.stage {
	case joining:
		g.hope(s)
	case member:
		before := g.position
		g.period(s)
		g.compact(s, before)
	}
	if g.stage != out {
		s.SetTimer(tick, g.c.Detector.Period)
	}
}
