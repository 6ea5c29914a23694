package group

import (
	"slices"

	"parley"
	"parley/agreement/ballot"
)

// A process that is in no view asks one member, its sponsor, and takes down what that
// delivers until it is a member itself: only then does it deliver anything.

// learner is what a sponsor knows of a process that it helps to join.
type learner struct {
	candidate
	sent     bool        // the snapshot
	position uint64      // of what was sent to it
	ready    bool        // the snapshot has come
	since    parley.Tick // when it asked
}

// joiner is what a process knows while it joins.
type joiner struct {
	sponsor  parley.ID
	caught   bool        // the snapshot has come
	since    parley.Tick // of the last word from the sponsor, or of the request
	patience parley.Tick // for the snapshot
	view     uint64      // in which the sponsor is
	start    uint64      // the position of the snapshot
	state    []byte      // and what came with it
	came     []delivery  // what the sponsor has delivered since
	early    []early     // messages of the view that it will be in
}

// delivery is one that the sponsor has told of.
type delivery struct {
	of   parley.ID
	body []byte
}

// early is a message that came before the view that it belongs to.
type early struct {
	from  parley.ID
	child int
	msg   parley.Msg
}

// learner returns what this member knows of a process that joins, nil if it does not.
func (g *machine) learner(id parley.ID) *learner {
	for i := range g.learners {
		if g.learners[i].id == id {
			return &g.learners[i]
		}
	}
	return nil
}

// drop forgets learners.
func (g *machine) drop(which func(learner) bool) { g.learners = slices.DeleteFunc(g.learners, which) }

// sponsor is upon receiving JOIN(j): send SNAPSHOT(v, position, state) to j. A frozen member
// delivers nothing meanwhile: it may be that the view cannot end without j.
func (g *machine) sponsor(s *parley.Step, j parley.ID, m parley.Msg) {
	c := candidate{j, m.Value, m.Seq}
	here := g.learner(j)
	switch {
	case c.life == 0 || c.life > g.most(g.lives[j]) || c.disk == 0 || c.disk > g.most(g.disks[j]):
		s.Refuse(j, "no incarnation")
		return
	case c.disk < g.disks[j], // a copy of a disk that was lost
		g.view.Members.Has(j) && !c.after(candidate{j, g.disks[j], g.lives[j]}), here != nil && !c.after(here.candidate):
		g.correct(s, j) // it came late
		return
	}
	// Whoever asks is not the member of that name: that one is no more.
	if g.view.Members.Has(j) {
		g.gone.Add(j)
	}
	if !g.leaving {
		g.drop(func(l learner) bool { return l.id == j })
		at, _ := slices.BinarySearchFunc(g.learners, j, func(l learner, id parley.ID) int { return int(l.id) - int(id) })
		g.learners = slices.Insert(g.learners, at, learner{candidate: c, since: g.now})
		if g.c.State {
			s.Indicate(parley.Msg{Kind: Wanted, Origin: j, Seq: g.position})
		} else {
			g.snapshot(s, nil)
		}
	}
	g.consider(s)
}

// stateIs is the answer to Wanted. It must be of just now: the layers go on.
func (g *machine) stateIs(s *parley.Step, m parley.Msg) {
	i := slices.IndexFunc(g.learners, func(l learner) bool { return !l.sent })
	switch {
	case g.stage != member || i < 0:
	case m.Seq != g.position:
		s.Indicate(parley.Msg{Kind: Wanted, Origin: g.learners[i].id, Seq: g.position})
	default:
		g.snapshot(s, m.Body)
	}
}

// snapshot sends the state to all who wait for it.
func (g *machine) snapshot(s *parley.Step, state []byte) {
	for i := range g.learners {
		if l := &g.learners[i]; !l.sent {
			l.sent, l.position = true, g.position
			g.send(s, l.id, parley.Msg{Kind: Snapshot, Seq: g.position, Value: l.life, Body: g.given(state)})
		}
	}
}

// ready is upon READY: the learner has caught up, and follows on a FIFO link. It may
// be named in the report. Where the report is given it gives another one: perhaps the view
// waits for that.
func (g *machine) ready(s *parley.Step, from parley.ID, m parley.Msg) {
	l := g.learner(from)
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

// forsake drops a learner that does not answer.
func (g *machine) forsake() {
	g.drop(func(l learner) bool { return !l.ready && g.now-l.since > 2*g.c.Admit })
}

// forward is upon delivering at position i with learners: send FORWARD(i, message) to whom
// it is for.
func (g *machine) forward(s *parley.Step, to parley.Set, sender parley.ID, m parley.Msg) {
	for i := range g.learners {
		if l := &g.learners[i]; l.sent && to.Has(l.id) {
			l.position++
			g.send(s, l.id, parley.Msg{Kind: Forward, Origin: sender, Seq: l.position, Value: l.life, Body: m.Body})
		}
	}
}

// admit is upon decided(value), learner in next: before delivering the cut send
// INSTALL(position, value) to it, and forget it. Neither is one served that has joined with
// somebody else's help.
func (g *machine) admit(s *parley.Step, d decision, value []byte) {
	for i := range g.learners {
		if l := &g.learners[i]; l.sent && d.has(l.candidate) {
			g.install(s, l, value)
		}
	}
	g.drop(func(l learner) bool {
		return d.next.Members.Has(l.id) && !l.after(candidate{l.id, d.disks[l.id], d.lives[l.id]})
	})
}

// takeAlong is for learners that are not in next: they were sent the cut as usual, and
// INSTALL only moves them to view v+1.
func (g *machine) takeAlong(s *parley.Step, value []byte) {
	for i := range g.learners {
		if g.learners[i].sent {
			g.install(s, &g.learners[i], value)
		}
	}
}

func (g *machine) install(s *parley.Step, l *learner, value []byte) {
	b := appendBytes(nil, value)
	for _, layer := range g.layers {
		b = appendBytes(b, layer.Snapshot())
	}
	g.send(s, l.id, parley.Msg{Kind: Install, Seq: l.position, Value: l.life, Body: b})
}

// Sponsor returns whom one of n processes asks to let it join after another one; 0 stands for that one
// in the beginning.
func Sponsor(self, last parley.ID, n int) parley.ID {
	next := (last + 1) % parley.ID(n)
	if next == self {
		next = (next + 1) % parley.ID(n)
	}
	return next
}

// join: a new incarnation asks the next process there is. It delivers nothing, and sends
// nothing but its votes, until it is in a view.
func (g *machine) join(s *parley.Step) {
	next, patience := Sponsor(g.self, g.joiner.sponsor, g.c.N), g.c.First
	if g.stage == joining && g.joiner.patience > 0 {
		patience = min(2*g.joiner.patience, g.c.Admit)
	} else if id, found := g.teller(); found {
		next = id // who knows of the view is up
	}
	queue := g.queue
	g.forget()
	g.stage, g.queue = joining, queue
	g.outnumber()
	if g.remember(s); g.c.Durable {
		s.Compact()
	}
	g.joiner = joiner{sponsor: next, since: g.now, patience: patience}
	if next != g.self {
		s.Send(next, parley.Msg{Kind: Join, Seq: g.life, Value: g.disk})
	}
}

// hope: who waits for too long tries again elsewhere.
func (g *machine) hope(s *parley.Step) {
	g.askAgain(s)
	patience := g.joiner.patience
	if g.joiner.caught {
		patience = g.c.Become
	}
	if g.now-g.joiner.since >= patience {
		g.join(s)
	}
}

// learn is what a joiner makes of a message: its sponsor's words, what others say in the
// view that it will be in, and what it is to vote on.
func (g *machine) learn(s *parley.Step, from parley.ID, child int, m parley.Msg) {
	mine := child == 0 && from == g.joiner.sponsor && m.Value == g.life
	switch {
	case mine && m.Kind == Snapshot && !g.joiner.caught:
		g.copy(s, m)
	case mine && m.Kind == Forward && g.joiner.caught:
		g.follow(s, m)
	case mine && m.Kind == Install && g.joiner.caught:
		g.installed(s, m)
	case child == 0 && (m.Kind <= ballot.Last || m.Kind == Ask):
		if g.outside(s, from, m); g.misnamed() {
			g.join(s)
		}
	case g.joiner.caught && uint64(s.Epoch) == g.joiner.view+1 && child > 0:
		if !g.room(m) {
			s.Refuse(from, "too many messages of the next view")
			return
		}
		g.joiner.early = append(g.joiner.early, early{from, child, m})
	}
}

// room tells whether a message of the next view can be kept: so many, and no more bytes
// than as many requests might have.
func (g *machine) room(m parley.Msg) bool {
	size := len(m.Body)
	for i := range g.joiner.early {
		size += len(g.joiner.early[i].msg.Body)
	}
	return len(g.joiner.early) < g.c.Queue && size <= g.c.Queue*g.c.Payload
}

// copy: the sponsor's position, and the state above its layers.
func (g *machine) copy(s *parley.Step, m parley.Msg) {
	j := &g.joiner
	if kept, _, ok := g.taken(m.Body); !ok || uint64(len(kept)) > m.Seq {
		s.Refuse(j.sponsor, "snapshot that cannot be read")
		return
	}
	j.view, j.start, j.state = uint64(s.Epoch), m.Seq, m.Body
	j.caught, j.since = true, g.now
	s.Send(j.sponsor, parley.Msg{Kind: Ready, Seq: g.life})
}

// follow is FORWARD: what the sponsor delivered all hold that it is for.
func (g *machine) follow(s *parley.Step, m parley.Msg) {
	j := &g.joiner
	// a position that is not its own, or too much for its memory: give up, take a new
	// incarnation, join again
	if int(m.Origin) >= g.c.N || m.Seq != j.start+uint64(len(j.came))+1 || len(j.came) >= most*g.c.Queue {
		g.join(s)
		return
	}
	j.came, j.since = append(j.came, delivery{m.Origin, m.Body}), g.now
}

// most is how many times a queue of deliveries a joiner takes down.
const most = 64

// installed is INSTALL, with self in next: take over the state, deliver what the sponsor has
// since and the cut, install v+1, replay buffered messages of v+1. Otherwise follow into that
// view.
func (g *machine) installed(s *parley.Step, m parley.Msg) {
	j := &g.joiner
	r := reader{b: m.Body}
	value := r.bytes()
	d, ok := readDecision(value, g.c.N, len(g.layers))
	switch {
	case !ok || m.Seq != j.start+uint64(len(j.came)) || d.next.Number != j.view+1 || !g.readable(d),
		d.next.Number < g.view.Number, // that view has ended
		!g.restore(&r):
		g.join(s)
		return
	case !d.has(g.own()):
		j.view, j.early, j.since = d.next.Number, nil, g.now
		return
	}
	if g.c.Durable {
		s.Append(j.record(m.Body))
	}
	came := g.become(s, d, value)
	g.open(s)
	for _, e := range came {
		if g.stage == member && g.view.Members.Has(e.from) && g.view.Number == d.next.Number {
			g.present(s, e.from, e.child, e.msg)
		}
	}
}

// become makes a member of the joiner, whose layers are where those of its sponsor were, and
// returns what has come of the view already.
func (g *machine) become(s *parley.Step, d decision, value []byte) []early {
	j := g.joiner
	kept, state, _ := g.taken(j.state) // which was looked at when it came
	g.stage, g.joiner, g.position = member, joiner{}, j.start-uint64(len(kept))
	s.Indicate(parley.Msg{Kind: Restored, Seq: g.position, Body: state})
	g.tell(s, kept)
	g.tell(s, j.came)
	g.records = max(g.c.Compact, g.c.Keep) // so that the state soon takes the place of the record
	g.enter(s, d, value)
	return j.early
}

// restore takes the layers to where the sponsor's stand, which is all that is left to read.
func (g *machine) restore(r *reader) bool {
	list := r.list(len(g.layers))
	for i, layer := range g.layers {
		if r.bad || !layer.Restore(list[i]) {
			return false
		}
	}
	return r.done()
}
