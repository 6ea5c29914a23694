package group

import (
	"encoding/binary"

	"parley"
	"parley/agreement/ballot"
)

// A process that is in no view asks one member, its sponsor, and records what the sponsor delivers. It
// delivers nothing until it is a member itself.

// joiner is the state of a process while it joins.
type joiner struct {
	sponsor   parley.ID
	caught    bool              // the snapshot has arrived
	since     parley.Tick       // when the sponsor last sent something, or the request was sent
	patience  parley.Tick       // how long to wait for the snapshot
	view      uint64            // of the sponsor
	start     uint64            // the position of the snapshot
	state     []byte            // the body of the snapshot
	delivered []delivery        // what the sponsor has delivered since the snapshot
	early     []bufferedMessage // messages of the view that the joiner will be in
}

// bufferedMessage is a message that arrived before the view that it belongs to.
type bufferedMessage struct {
	from  parley.ID
	child int
	msg   parley.Msg
}

// Sponsor returns the process to which self sends its next request to join. The argument last is the process that
// self asked before, or 0 for the first request. The argument n is the number of processes.
func Sponsor(self, last parley.ID, n int) parley.ID {
	next := (last + 1) % parley.ID(n)
	if next == self {
		next = (next + 1) % parley.ID(n)
	}
	return next
}

// position is the position up to which the joiner has what the sponsor delivered.
func (j *joiner) position() uint64 { return j.start + uint64(len(j.delivered)) }

// follow handles FORWARD: it appends a delivery of the sponsor. It reports whether the delivery is the next
// one and within the memory limit.
func (j *joiner) follow(now parley.Tick, c *Config, m parley.Msg) bool {
	if int(m.Origin) >= c.N || m.Seq != j.position()+1 || len(j.delivered) >= maxJoinerQueues*c.Queue {
		return false
	}
	j.delivered, j.since = append(j.delivered, delivery{m.Origin, m.Body}), now
	return true
}

// maxJoinerQueues bounds the deliveries that a joiner records, in multiples of Config.Queue.
const maxJoinerQueues = 64

// room reports whether a message of the next view can be kept: at most Queue messages, with at most
// Queue*Payload bytes.
func (j *joiner) room(c *Config, m parley.Msg) bool {
	size := len(m.Body)
	for i := range j.early {
		size += len(j.early[i].msg.Body)
	}
	return len(j.early) < c.Queue && size <= c.Queue*c.Payload
}

// over reports whether the joiner has waited for too long.
func (j *joiner) over(now parley.Tick, c *Config) bool {
	patience := j.patience
	if j.caught {
		patience = c.Become
	}
	return now-j.since >= patience
}

// record encodes all that made the joiner a member: the position and the state, what was delivered since, and
// the body of INSTALL.
func (j *joiner) record(install []byte) []byte {
	b := binary.AppendUvarint([]byte{installKind}, j.start)
	b = parley.AppendBytes(b, j.state)
	return append(appendDeliveries(b, j.delivered), install...)
}

// State visits every variable.
func (j *joiner) State(v *parley.Vars) {
	v.ID("sponsor", &j.sponsor)
	v.Bool("caught up", &j.caught)
	v.Time("heard", &j.since)
	parley.Num(v, "patience", &j.patience)
	parley.Num(v, "view of the sponsor", &j.view)
	parley.Num(v, "start", &j.start)
	v.Bytes("state", &j.state)
	parley.Slice(v, "came", &j.delivered, func(_ int, x *delivery) { x.state(v) })
	parley.Slice(v, "early", &j.early, func(_ int, e *bufferedMessage) {
		v.ID("from", &e.from)
		parley.Num(v, "layer", &e.child)
		v.Msg("message", parley.Env{From: e.from}, &e.msg)
	})
}

// join makes a new incarnation ask the next process. It delivers nothing, and sends nothing but its votes,
// until it is in a view.
func (g *machine) join(s *parley.Step) {
	next, patience := Sponsor(g.own.id, g.joiner.sponsor, g.c.N), g.c.First
	if g.stage == joining && g.joiner.patience > 0 {
		patience = min(2*g.joiner.patience, g.c.Admit)
	} else if id, found := g.teller(); found {
		next = id // a process that knows of the view is up
	}
	queue := g.queue
	g.forget()
	g.stage, g.queue = joining, queue
	g.outnumber()
	if g.remember(s); g.c.Durable {
		s.Compact()
	}
	g.joiner = joiner{sponsor: next, since: g.now, patience: patience}
	if next != g.own.id {
		s.Send(next, parley.Msg{Kind: Join, Seq: g.own.life, Value: g.own.disk})
	}
}

// learn handles a message at a joiner: messages of its sponsor, messages of the view that it will be in, and
// ballots that it votes on.
func (g *machine) learn(s *parley.Step, from parley.ID, child int, m parley.Msg) {
	j := &g.joiner
	mine := child == 0 && from == j.sponsor && m.Value == g.own.life
	switch {
	case mine && m.Kind == Snapshot && !j.caught:
		g.takeSnapshot(s, m)
	case mine && m.Kind == Forward && j.caught:
		// a position that is not its own, or too much for its memory: give up, take a new
		// incarnation, join again
		if !j.follow(g.now, g.c, m) {
			g.join(s)
		}
	case mine && m.Kind == Install && j.caught:
		g.installed(s, m)
	case child == 0 && (m.Kind <= ballot.Last || m.Kind == DecisionQuery):
		if g.voteOutside(s, from, m); g.misnamed() {
			g.join(s)
		}
	case j.caught && uint64(s.Epoch) == j.view+1 && child > 0:
		if !j.room(g.c, m) {
			s.Refuse(from, "too many messages of the next view")
			return
		}
		j.early = append(j.early, bufferedMessage{from, child, m})
	}
}

// voteOutside handles the ballots of others at a process that is in no view: it votes on the end of the last view
// that it knows, if it has the disk whose votes count.
func (g *machine) voteOutside(s *parley.Step, from parley.ID, m parley.Msg) {
	switch u := uint64(s.Epoch); {
	case m.Kind == ballot.Decision:
		g.follows(s, from, m)
	case u < g.view.Number:
		g.late(s, from, m)
	case u > g.view.Number:
		g.inquire(s, from)
	case (m.Kind == ballot.Prepare || m.Kind == ballot.Accept) && g.disks[g.own.id] == g.own.disk:
		g.ballots(s, from, m)
	}
}

// takeSnapshot handles SNAPSHOT: it takes the sponsor's position, and the state above its layers.
func (g *machine) takeSnapshot(s *parley.Step, m parley.Msg) {
	j := &g.joiner
	if kept, _, ok := g.history.decodeSnapshot(m.Body, g.c.N); !ok || uint64(len(kept)) > m.Seq {
		s.Refuse(j.sponsor, "snapshot that cannot be read")
		return
	}
	j.view, j.start, j.state = uint64(s.Epoch), m.Seq, m.Body
	j.caught, j.since = true, g.now
	s.Send(j.sponsor, parley.Msg{Kind: Ready, Seq: g.own.life})
}

// installed handles INSTALL, with self in next: take over the state, deliver what the sponsor has delivered
// since and the cut, install v+1, replay buffered messages of v+1. Otherwise it moves to that view as a
// joiner.
func (g *machine) installed(s *parley.Step, m parley.Msg) {
	j := &g.joiner
	r := parley.Reader{Rest: m.Body}
	value := r.Bytes()
	d, ok := g.layers.read(value)
	switch {
	case !ok || m.Seq != j.position() || d.next.view.Number != j.view+1,
		d.next.view.Number < g.view.Number, // that view has ended
		!g.layers.restore(&r):
		g.join(s)
		return
	case !d.next.has(g.own):
		j.view, j.early, j.since = d.next.view.Number, nil, g.now
		return
	}
	if g.c.Durable {
		s.Append(j.record(m.Body))
	}
	came := g.become(s, d, value)
	g.open(s)
	for _, e := range came {
		if g.stage == member && g.view.Members.Has(e.from) && g.view.Number == d.next.view.Number {
			g.present(s, e.from, e.child, e.msg)
		}
	}
}

// become makes the joiner a member, whose layers are in the state of its sponsor's layers. It returns the
// messages of the view that have arrived already.
func (g *machine) become(s *parley.Step, d decision, value []byte) []bufferedMessage {
	j := g.joiner
	kept, state, _ := g.history.decodeSnapshot(j.state, g.c.N) // valid: copy checked it
	g.stage, g.joiner, g.history.position = member, joiner{}, j.start-uint64(len(kept))
	s.Indicate(parley.Msg{Kind: SnapshotInstalled, Seq: g.history.position, Body: state})
	g.history.tell(s, kept)
	g.history.tell(s, j.delivered)
	g.layers.records = max(g.c.Compact, g.c.Keep) // so that a compaction soon replaces the record
	g.enter(s, d, value)
	return j.early
}
