package group

import (
	"encoding/binary"

	"parley"
	"parley/agreement/ballot"
)

// A process that is in no view asks one member, its sponsor, and follows what that
// delivers until it is a member itself. A sponsor serves one learner at a time.

// learner is what a sponsor knows of the process that it helps to join.
type learner struct {
	here bool // there is one
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
	early    []early     // messages of the view that it will be in
}

// early is a message that came before the view that it belongs to.
type early struct {
	from  parley.ID
	child int
	msg   parley.Msg
}

// sponsor is upon receiving JOIN(j), not frozen, no learner: learner := j; send
// SNAPSHOT(v, position, last keys, state) to j. Who was in this view, or had another
// sponsor in it, may have delivered what this one has not: it is to join the next one,
// so as to deliver nothing twice, nor out of order.
func (g *machine) sponsor(s *parley.Step, j parley.ID, m parley.Msg) {
	c := candidate{j, m.Seq}
	switch {
	case c.life == 0 || c.life > lives:
		s.Refuse(j, "no incarnation")
		return
	case g.view.Members.Has(j) && c.life <= g.lives[j],
		g.learner.here && g.learner.id == j && c.life <= g.learner.life:
		return // it came late
	}
	// Whoever asks is not the member of that name: that one is no more.
	if g.view.Members.Has(j) {
		g.gone.Add(j)
	}
	g.stale = g.stale || m.Value == g.view.Number
	if m.Value < g.view.Number && !g.frozen && !g.leaving && (!g.learner.here || g.learner.id == j) {
		g.learner = learner{here: true, candidate: c, since: g.now}
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
	switch {
	case g.stage != member || !g.learner.here || g.learner.sent:
	case m.Seq != g.position:
		s.Indicate(parley.Msg{Kind: Wanted, Origin: g.learner.id, Seq: g.position})
	default:
		g.snapshot(s, m.Body)
	}
}

func (g *machine) snapshot(s *parley.Step, state []byte) {
	g.learner.sent, g.learner.position = true, g.position
	g.send(s, g.learner.id, parley.Msg{
		Kind: Snapshot, Seq: g.position, Value: g.learner.life, Body: append(g.standing(nil), state...),
	})
}

// standing appends where the layers stand.
func (g *machine) standing(b []byte) []byte {
	for _, layer := range g.layers {
		b = appendBytes(b, layer.Snapshot())
	}
	return b
}

// ready is upon READY: the learner has caught up, and follows on a FIFO link. It may
// be named in the report.
func (g *machine) ready(s *parley.Step, from parley.ID, m parley.Msg) {
	if g.learner.sent && g.learner.candidate == (candidate{from, m.Seq}) {
		g.learner.ready = true
		g.consider(s)
	}
}

// forsake drops a learner that does not answer.
func (g *machine) forsake() {
	if g.learner.here && !g.learner.ready && g.now-g.learner.since > 2*g.c.Admit {
		g.learner = learner{}
	}
}

// forward is upon delivering at position i with a learner: send FORWARD(i, message), if
// it is for that.
func (g *machine) forward(s *parley.Step, layer int, to parley.Set, sender parley.ID, m parley.Msg) {
	if !g.learner.sent || g.stage != member || !to.Has(g.learner.id) {
		return
	}
	g.learner.position++
	b := binary.AppendUvarint(nil, uint64(layer))
	b = appendBytes(b, g.layers[layer].Snapshot())
	g.send(s, g.learner.id, parley.Msg{
		Kind: Forward, Origin: sender, Seq: g.learner.position, Value: g.learner.life, Body: append(b, m.Body...),
	})
}

// admit is upon decided(value), learner in next: before delivering the cut send
// INSTALL(position, value) to it; learner := none. Neither is one served that has
// joined with somebody else's help.
func (g *machine) admit(s *parley.Step, d decision, value []byte) {
	if g.learner.sent && d.has(g.learner.candidate) {
		g.install(s, value)
	}
	if g.learner.here && d.next.Members.Has(g.learner.id) && g.learner.life <= d.lives[g.learner.id] {
		g.learner = learner{}
	}
}

// takeAlong is for a learner that is not in next: it was sent the cut as usual, and
// INSTALL only moves it to view v+1.
func (g *machine) takeAlong(s *parley.Step, value []byte) {
	if g.learner.sent {
		g.install(s, value)
	}
}

func (g *machine) install(s *parley.Step, value []byte) {
	g.send(s, g.learner.id, parley.Msg{
		Kind: Install, Seq: g.learner.position, Value: g.learner.life, Body: g.standing(appendBytes(nil, value)),
	})
}

// join: a new incarnation asks the next process there is. It delivers nothing, sends
// nothing and votes for nothing until it is in a view.
func (g *machine) join(s *parley.Step) {
	next, patience := g.joiner.sponsor+1, g.c.First
	if g.stage == joining && g.joiner.patience > 0 {
		patience = min(2*g.joiner.patience, g.c.Admit)
	}
	queue := g.queue
	g.forget()
	g.stage, g.queue = joining, queue
	g.life++
	s.Append(lifeRecord(g.life))
	s.Compact()
	if next %= parley.ID(g.c.N); next == g.self {
		next = (next + 1) % parley.ID(g.c.N)
	}
	g.joiner = joiner{sponsor: next, since: g.now, patience: patience}
	if next != g.self {
		s.Send(next, parley.Msg{Kind: Join, Seq: g.life, Value: g.last})
	}
}

// hope: who waits for too long tries again elsewhere.
func (g *machine) hope(s *parley.Step) {
	patience := g.joiner.patience
	if g.joiner.caught {
		patience = g.c.Become
	}
	if g.now-g.joiner.since >= patience {
		g.join(s)
	}
}

// learn is what a joiner makes of a message: its sponsor's words, and what others
// say in the view that it will be in.
func (g *machine) learn(s *parley.Step, from parley.ID, child int, m parley.Msg) {
	mine := child == 0 && from == g.joiner.sponsor && m.Value == g.life
	switch {
	case mine && m.Kind == Snapshot && !g.joiner.caught:
		g.copy(s, m)
	case mine && m.Kind == Forward && g.joiner.caught:
		g.follow(s, m)
	case mine && m.Kind == Install && g.joiner.caught:
		g.installed(s, m)
	case g.joiner.caught && uint64(s.Epoch) == g.view.Number+1 && (child > 0 || m.Kind <= ballot.Last):
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

// restore takes the layers to where the sponsor's stand.
func (g *machine) restore(r *reader) bool {
	list := r.list(len(g.layers))
	for i, layer := range g.layers {
		if r.bad || !layer.Restore(list[i]) {
			return false
		}
	}
	return !r.bad
}

// copy: the sponsor's position, where its layers stand, and the state above them.
func (g *machine) copy(s *parley.Step, m parley.Msg) {
	r := reader{b: m.Body}
	if !g.restore(&r) {
		s.Refuse(g.joiner.sponsor, "snapshot that cannot be read")
		return
	}
	g.view.Number, g.position = uint64(s.Epoch), m.Seq
	g.joiner.caught, g.joiner.since = true, g.now
	s.Indicate(parley.Msg{Kind: Restored, Seq: m.Seq, Body: r.b})
	s.Send(g.joiner.sponsor, parley.Msg{Kind: Ready, Seq: g.life})
}

// follow is FORWARD: what the sponsor delivered all hold that it is for.
func (g *machine) follow(s *parley.Step, m parley.Msg) {
	r := reader{b: m.Body}
	layer, snapshot := r.number(uint64(max(len(g.layers), 1)-1)), r.bytes()
	// a position that is not its own: give up, take a new incarnation, join again
	if r.bad || len(g.layers) == 0 || int(m.Origin) >= g.c.N || m.Seq != g.position+1 ||
		!g.layers[layer].Restore(snapshot) {
		g.join(s)
		return
	}
	g.position, g.last, g.joiner.since = m.Seq, uint64(s.Epoch), g.now
	s.Deliver(m.Origin, parley.Msg{Kind: parley.Carried, Origin: m.Origin, Seq: m.Seq, Body: r.b})
}

// installed is INSTALL, with self in next: deliver the cut above the last key,
// install v+1, replay buffered messages of v+1. Otherwise follow into that view.
func (g *machine) installed(s *parley.Step, m parley.Msg) {
	r := reader{b: m.Body}
	value := r.bytes()
	d, ok := readDecision(value, g.c.N, len(g.layers))
	if !ok || m.Seq != g.position || d.next.Number != g.view.Number+1 || !g.readable(d) || !g.restore(&r) {
		g.join(s)
		return
	}
	if !d.has(candidate{g.self, g.life}) {
		g.view.Number = d.next.Number
		g.joiner.early, g.joiner.since = nil, g.now
		return
	}
	came := g.joiner.early
	g.stage, g.joiner = member, joiner{}
	g.records = g.c.Compact // so that in durable mode the state is soon on the disk
	g.enter(s, d, value)
	g.open(s)
	for _, e := range came {
		if g.stage == member && g.view.Members.Has(e.from) && g.view.Number == d.next.Number {
			g.present(s, e.from, e.child, e.msg)
		}
	}
}
