package rsm

import (
	"parley"
	"parley/membership/detector"
	"parley/membership/group"
)

// Application is the state machine: each command takes it from one state to the
// next and gives an answer, and both depend on nothing but the state and the command.
type Application interface {
	// Apply carries out a command.
	Apply(command []byte) (answer []byte)
	// Snapshot returns the state.
	Snapshot() []byte
	// Restore takes a state back, and tells whether the bytes were one.
	Restore(snapshot []byte) bool
}

// The kinds that pass between a service and what is above it.
const (
	// Command is a Request: Value is the client, below 1<<62, Seq the number of its
	// command, from 1 to 1<<63 - 1, and Body the command. One with an earlier number is
	// answered only if it is the last of that client, and never applied. See also
	// [parley.Carried], with the process itself as the client.
	Command = parley.Local + 0x30 + iota
	// Answer is a delivery: Seq is the position of the command, Value the client,
	// Origin the process that was asked, Body the answer. Clients from 1<<63 on are
	// processes: the low 16 bits are the process, those between tell its lives apart. A
	// process answers its own commands in the order in which it was asked, each once,
	// but where answers are checked: then one may overtake another.
	Answer
	// Configure is a Request to change the Setup by an ordered command, which has a
	// position and no answer: Body is the Setup, by [Setup.Append].
	Configure
	// Commands is a Request to have several commands applied, one after the other: Body is
	// what [AppendCommand] wrote, and Seq a number that tells packs of one process apart.
	Commands
	// Replies is the delivery that answers Commands, to who asked alone: Value is the number
	// of the pack, Seq the position behind it, and Body a reply to each command of it, see
	// [ReadReplies]. A process that came back may be answered what it asked before again.
	Replies
	// Inspect is a Request, and the delivery that answers it: Seq is the position, and unless
	// the request has Value 1, which leaves out what takes time, Value
	// a hash of all that later answers depend on.
	Inspect
)

// The indications of a service.
const (
	// Diverged tells that the state of Origin at position Seq is not that of the
	// majority. If that is the process itself it stops.
	Diverged = parley.Indication + 0x30 + iota
	// Differs tells that the state of Origin at position Seq is not this process's
	// own, and that there is no majority to tell whose is wrong.
	Differs
	// Stopped tells that this copy applies and answers nothing more, until it gets a
	// state when it joins again. Seq: its position. Body: why, in words.
	Stopped
	// Serving tells where states come in pieces, later than the view ([Config].Piece), with
	// Value 1 that this copy carries out from here on what it is asked: it is a member, in this
	// life, and has the state, over a durable group on its disk. Value 0: that is so no more.
	// At first it is not.
	Serving
	// Parted tells that the state of Origin, the process itself, at position Seq does not count: it
	// fetches that of the others. What it has not answered may be done or not. See [Config].Liars.
	Parted
	// Alike tells that it has it.
	Alike
	// Lacks tells that the state of Origin, the process itself, at position Seq counts from here on, although it
	// lacks what was delivered while the process fetched another one: no member of the view has that. What was
	// answered meanwhile may be lost.
	Lacks
)

// The messages.
const (
	apply  parley.Kind = iota + 1 // Value: the client; Seq: its number; Body: the command
	check                         // Seq: a position; Value: the hash of the state there
	change                        // Body: a Setup
	pack                          // Seq: the number of who asks; Body: commands, by AppendCommand
)

// process is one copy of the service.
type process struct {
	parley.Base
	server
	fetch   *fetch // not nil: the state of this copy is still to come
	marks   uint64 // that it asked for in this life
	members parley.Set
}

// Start: without transfer the disk tells lives apart. With it the first view does in
// which the process is: another life joins in a later one, even if the disk is lost.
func (p *process) Start(s *parley.Step) {
	if s.Restart && p.stopped {
		s.Indicate(parley.Msg{Kind: Stopped, Origin: s.Self, Seq: p.position, Body: []byte("it had before a restart")})
	}
	if !p.c.Transfer {
		p.own.starts.Begin(s)
		p.own.life, p.own.in = uint64(p.own.starts), true
	}
}

// Request: to have a command applied, broadcast it.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	switch {
	case m.Kind == group.Leave || m.Kind == group.Exclude || m.Kind == detector.Broke || m.Kind == detector.Mended:
		s.Request(m) // which is the group's beneath
	case m.Kind == Inspect: // of a copy that has stopped too
		told := parley.Msg{Kind: Inspect, Origin: s.Self, Seq: p.position}
		if m.Value == 0 {
			told.Value = p.hash()
		}
		s.Deliver(s.Self, told)
	case p.stopped:
		s.Refuse(s.Self, "request to a copy that has stopped")
	case p.fetch != nil && m.Kind != parley.Carried:
		p.fetch.hold(s, m)
	case m.Kind == parley.Carried && len(p.own.queue) >= Queue:
		s.Refuse(s.Self, "too many commands of its own")
	case m.Kind == parley.Carried:
		p.own.queue = append(p.own.queue, m.Body)
		if len(p.own.queue) == 1 {
			p.next(s)
		}
	case m.Kind == Command && m.Value < opened && numbered(m.Seq):
		s.Broadcast(parley.Msg{Kind: apply, Value: m.Value, Seq: m.Seq, Body: m.Body})
	case m.Kind == Configure:
		if _, ok := readSetup(m.Body, p.c.N); !ok {
			s.Refuse(s.Self, "request with a setup that is none")
			return
		}
		s.Broadcast(parley.Msg{Kind: change, Body: m.Body})
	case m.Kind == Commands:
		if _, ok := readCommands(m.Body); !ok {
			s.Refuse(s.Self, "request with a pack that is none")
			return
		}
		s.Broadcast(parley.Msg{Kind: pack, Seq: m.Seq, Body: m.Body})
	default:
		s.Refuse(s.Self, "request of another kind")
	}
}

// next broadcasts the first command of its own that is not applied.
func (p *process) next(s *parley.Step) {
	if p.fetch == nil {
		p.own.next(s)
	}
}

// serves tells whether this copy carries out what it is asked: in a view, with the state of the others.
func (p *process) serves() bool { return p.own.in && p.fetch == nil && !p.stopped }

// Receive is from beneath, or from a link. It tells whether the copy serves, if that has changed.
func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	before := p.serves()
	p.receive(s, from, m)
	if now := p.serves(); p.c.Piece > 0 && now != before {
		told := parley.Msg{Kind: Serving, Origin: s.Self, Seq: p.position}
		if now {
			told.Value = 1
		}
		s.Indicate(told)
	}
}

// receive: upon delivery beneath, in the order of the broadcast.
func (p *process) receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind == group.SnapshotInstalled:
		p.restore(s, m)
	case m.Kind == group.Excluded:
		p.own.in, p.doubt.compares = p.own.in && !p.c.Transfer, nil
		if p.fetch != nil {
			p.fetch = &fetch{} // it hears again what to do when it is back
		}
	case m.Kind < parley.Local && !s.Carried:
		p.link(s, from, m)
	case p.stopped && m.Kind == mark:
		lacks(s, from, m)
	case m.Kind == missing && p.c.Liars > 0:
		p.doubt.repeat(s, m)
	case p.stopped && m.Kind == parley.View && p.c.Liars > 0:
		p.begins(s, m)
	case p.stopped:
	case m.Kind == parley.View && p.c.Transfer:
		p.view(s, m)
	case m.Kind == group.SnapshotWanted:
		// A joiner gets all that later answers depend on. A copy without it leaves the
		// joiner to ask another one.
		if p.fetch == nil {
			s.Request(parley.Msg{Kind: group.State, Seq: m.Seq, Body: p.given()})
		}
	case m.Kind >= parley.Local:
	case m.Kind == stand && p.c.Liars > 0:
		if p.doubt.hear(s, from, m, p.members) {
			p.settle(s)
		}
	case p.fetch != nil && !p.doubt.comparing():
		p.fetches(s, p.fetch.wait(s, from, m, p.c.Longest))
	default:
		p.delivered(s, from, m)
	}
}

// delivered is a message in its place in the order.
func (p *process) delivered(s *parley.Step, from parley.ID, m parley.Msg) {
	switch m.Kind {
	case apply:
		if p.apply(s, from, m) {
			p.next(s)
		}
	case check:
		switch wrong := p.check(s, from, m.Seq, m.Value); {
		case wrong && p.c.Liars > 0:
			p.part(s) // which is of a liar, perhaps
		case wrong:
			p.stop(s, "its state is not that of the majority")
		}
	case change:
		p.change(s, from, m.Body)
	case pack:
		p.pack(s, from, m)
	case mark:
		p.keep(s, from, m)
	default:
		s.Refuse(from, "no message of a service")
	}
}

// view: what is asked is carried now. What was asked in the view before may have been
// too much for the group, which refuses what it cannot keep until the next view. Views
// that come back from a log belong to another life.
func (p *process) view(s *parley.Step, m parley.Msg) {
	p.begins(s, m)
	if s.Restart {
		return
	}
	p.own.in = true
	if p.own.life == 0 {
		p.own.life = m.Seq
	}
	if p.fetch != nil && !p.doubt.comparing() {
		p.fetches(s, p.fetch.seen(s, p.members, p.c.Longest))
	}
	p.next(s)
}

// restore: a process that joins takes over the state of its sponsor, and forgets what
// it knew, but for its own commands: reintegration. A state is never empty: if nothing
// comes the group beneath gives no states.
func (p *process) restore(s *parley.Step, m parley.Msg) {
	p.own.in, p.fetch, p.doubt.compares = !p.c.Transfer, nil, nil
	body := m.Body
	switch {
	case len(body) == 0:
		p.stop(s, "no state came with the admission: the group gives none")
		return
	case p.c.Piece > 0 && body[0] == marked:
		p.stopped, p.doubt.doubtful, p.fetch = false, false, &fetch{}
		return
	case p.c.Piece > 0 && body[0] == whole:
		body = body[1:]
	}
	if !p.replace(body) {
		p.stop(s, "the state of the sponsor cannot be read")
	}
	p.doubt.doubtful = p.c.Liars > 0
}

// replace takes over the state of another copy, and tells whether it is one.
func (p *process) replace(body []byte) bool {
	if !p.load(body) {
		return false
	}
	p.stopped, p.votes, p.doubt.doubtful, p.fetch = false, nil, false, nil
	return true
}

// State visits every variable.
func (p *process) State(v *parley.Vars) {
	p.own.State(v)
	v.DurableIf(p.c.Durable, func() { p.copyState(v) })
	if p.c.Piece > 0 {
		parley.Num(v, "marks", &p.marks)
		v.Set("members", &p.members)
		parley.Slice(v, "offers", (*[]offer)(&p.offers), func(_ int, o *offer) { o.visit(v) })
		if p.fetch != nil {
			v.Machine("fetch", p.fetch)
		}
	}
}

// copyState visits what a copy is, beside what it asks itself.
func (p *process) copyState(v *parley.Vars) {
	(&state{of: &p.replica}).State(v)
	v.Bool("stopped", &p.stopped)
	if p.c.Piece > 0 {
		fetching := p.fetch != nil
		if v.Bool("fetching", &fetching); fetching && p.fetch == nil {
			p.fetch = &fetch{}
		} else if !fetching {
			p.fetch = nil
		}
	}
	if p.c.Liars > 0 {
		p.doubt.State(v)
	}
	p.votes.visit(v)
}
