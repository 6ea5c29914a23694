package rsm

import (
	"parley"
	"parley/membership/detector"
	"parley/membership/group"
)

// Application is the state machine. A command takes it from one state to the next and gives an answer. Both
// must depend only on the state and the command.
type Application interface {
	// Apply applies a command and returns the answer.
	Apply(command []byte) (answer []byte)
	// Snapshot returns the state.
	Snapshot() []byte
	// Restore replaces the state with a snapshot, and reports whether the bytes are a snapshot.
	Restore(snapshot []byte) bool
}

// The kinds of requests and deliveries between a service and the layer above.
const (
	// Command is a Request. Value: the client, below 1<<62. Seq: the number of its command, from 1 to 1<<63 -
	// 1. Body: the command. If the number is not above the client's last number, the command is never
	//    applied. It is answered only if it is the client's last command. See also [parley.Carried], whose
	//    client is the process itself.
	Command = parley.Local + 0x30 + iota
	// Answer is a delivery. Seq: the position of the command. Value: the client. Origin: the process that got
	// the request. Body: the answer. Clients from 1<<63 on are processes: the low 16 bits are the process,
	// and the bits in between are its incarnation. A process answers each of its own commands once, in the
	// order of the requests. With checked answers, one answer may overtake another.
	Answer
	// Configure is a Request to change the Setup by an ordered command, which has a position and no answer.
	// Body: the Setup, from [Setup.Append].
	Configure
	// Commands is a Request to apply several commands, one after the other. Body: from [AppendCommand]. Seq: a
	// number that distinguishes the packs of one process.
	Commands
	// Replies is the delivery that answers Commands, only at the process that requested them. Value: the
	// number of the pack. Seq: the position after it. Body: a reply to each command, see [ReadReplies]. A
	// restarted process may get replies to requests of an earlier incarnation.
	Replies
	// Inspect is a Request, and also the delivery that answers it. Seq: the position. Value: a hash of everything on
	// which later answers depend. A Request with Value 1 gets an answer without the hash, because the hash takes
	// time.
	Inspect
)

// The indications of a service.
const (
	// Diverged indicates that the state of Origin at position Seq differs from the state of the majority. If
	// Origin is the process itself, it stops.
	Diverged = parley.Indication + 0x30 + iota
	// Differs indicates that the state of Origin at position Seq differs from this process's own, and that no
	// majority shows which one is wrong.
	Differs
	// Stopped indicates that this replica applies and answers nothing more until it rejoins and gets a state.
	// Seq: its position. Body: the reason in words.
	Stopped
	// Serving indicates, with Value 1, that this replica now carries out requests: it is a member in this incarnation
	// and has the state. If the group is durable, the state is on disk. With Value 0 the replica no longer carries
	// out requests. A replica indicates Serving only if states are fetched in pieces ([Config].Piece). Then Serving
	// may come later than the view. Initially a replica does not serve.
	Serving
	// Parted indicates that the state of Origin, the process itself, at position Seq is not the chosen state.
	// The process then fetches the chosen state. The outcome of its unanswered commands is unknown. See
	// [Config].Liars.
	Parted
	// Alike indicates that the process has fetched the chosen state.
	Alike
	// Lacks indicates that the state of Origin, the process itself, at position Seq is the chosen state,
	// although it lacks deliveries. These were delivered while the process fetched another state, and no
	// member of the view has them. Commands answered in the meantime may be lost.
	Lacks
)

// The messages.
const (
	apply  parley.Kind = iota + 1 // Value: the client; Seq: its number; Body: the command
	check                         // Seq: a position; Value: the hash of the state there
	change                        // Body: a Setup
	pack                          // Seq: number chosen by the requester; Body: commands, by AppendCommand
)

// process is the machine of one replica.
type process struct {
	parley.Base
	server
	fetch   *fetch // not nil: this replica does not have its state yet
	marks   uint64 // requested in this incarnation
	members parley.Set
}

// Start begins an incarnation. Without Transfer, the disk numbers incarnations. With it, the first view that
// contains the process does: a later incarnation joins in a later view, even if the disk is lost.
func (p *process) Start(s *parley.Step) {
	if s.Restart && p.stopped {
		s.Indicate(parley.Msg{Kind: Stopped, Origin: s.Self, Seq: p.position, Body: []byte("it had before a restart")})
	}
	if !p.c.Transfer {
		p.own.starts.Begin(s)
		p.own.life, p.own.in = uint64(p.own.starts), true
	}
}

// Request broadcasts a command.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	switch {
	case m.Kind == group.Leave || m.Kind == group.Exclude || m.Kind == detector.Broke || m.Kind == detector.Mended:
		s.Request(m) // for the group beneath
	case m.Kind == Inspect: // also at a replica that has stopped
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

// next broadcasts the first own command that is not applied.
func (p *process) next(s *parley.Step) {
	if p.fetch == nil {
		p.own.next(s)
	}
}

// serves reports whether this replica carries out requests: it is in a view and has the state.
func (p *process) serves() bool { return p.own.in && p.fetch == nil && !p.stopped }

// Receive handles a delivery from beneath or a message from a link. It indicates when the replica starts or
// stops serving.
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

// receive handles a delivery from beneath, in the order of the broadcast, or a message from a link.
func (p *process) receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind == group.SnapshotInstalled:
		p.restore(s, m)
	case m.Kind == group.Excluded:
		p.own.in, p.trust.compares = p.own.in && !p.c.Transfer, nil
		if p.fetch != nil {
			p.fetch = &fetch{} // when readmitted, it learns again how to get the state
		}
	case m.Kind < parley.Local && !s.Carried:
		p.link(s, from, m)
	case p.stopped && m.Kind == mark:
		lacks(s, from, m)
	case m.Kind == missing && p.c.Liars > 0:
		p.trust.repeat(s, m)
	case p.stopped && m.Kind == parley.View && p.c.Liars > 0:
		p.begins(s, m)
	case p.stopped:
	case m.Kind == parley.View && p.c.Transfer:
		p.view(s, m)
	case m.Kind == group.SnapshotWanted:
		// A joiner gets everything that later answers depend on. A replica that does not have it gives
		// nothing; the joiner asks another one.
		if p.fetch == nil {
			s.Request(parley.Msg{Kind: group.State, Seq: m.Seq, Body: p.given()})
		}
	case m.Kind >= parley.Local:
	case m.Kind == stand && p.c.Liars > 0:
		if p.trust.hear(s, from, m, p.members) {
			p.settle(s)
		}
	case p.fetch != nil && !p.trust.comparing():
		p.fetches(s, p.fetch.wait(s, from, m, p.c.Longest))
	default:
		p.delivered(s, from, m)
	}
}

// delivered handles a message at its position in the order.
func (p *process) delivered(s *parley.Step, from parley.ID, m parley.Msg) {
	switch m.Kind {
	case apply:
		if p.apply(s, from, m) {
			p.next(s)
		}
	case check:
		switch wrong := p.check(s, from, m.Seq, m.Value); {
		case wrong && p.c.Liars > 0:
			p.part(s) // the majority may be wrong because of a liar
		case wrong:
			p.stop(s, "its state differs from that of the majority")
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

// view handles a view: from now on broadcasts are carried. Own commands of the previous view are broadcast
// again, because the group may have refused them: it keeps a limited number until the next view. Views that
// are replayed from a log belong to an earlier incarnation.
func (p *process) view(s *parley.Step, m parley.Msg) {
	p.begins(s, m)
	if s.Restart {
		return
	}
	p.own.in = true
	if p.own.life == 0 {
		p.own.life = m.Seq
	}
	if p.fetch != nil && !p.trust.comparing() {
		p.fetches(s, p.fetch.seen(s, p.rule()))
	}
	p.next(s)
}

// restore handles the state from the sponsor when the process joins. The process forgets what it knew, except
// its own commands: reintegration. A state is never empty. An empty Body means that the group beneath gives no
// states.
func (p *process) restore(s *parley.Step, m parley.Msg) {
	p.own.in, p.fetch, p.trust.compares = !p.c.Transfer, nil, nil
	body := m.Body
	switch {
	case len(body) == 0:
		p.stop(s, "no state came with the admission: the group gives none")
		return
	case p.c.Piece > 0 && body[0] == marked:
		p.stopped, p.trust.unconfirmed, p.fetch = false, false, &fetch{}
		return
	case p.c.Piece > 0 && body[0] == whole:
		body = body[1:]
	}
	if !p.replace(body) {
		p.stop(s, "the state of the sponsor cannot be read")
	}
	p.trust.unconfirmed = p.c.Liars > 0
}

// replace takes over the state of another replica. It returns whether body is a state.
func (p *process) replace(body []byte) bool {
	if !p.load(body) {
		return false
	}
	p.stopped, p.votes, p.trust.unconfirmed, p.fetch = false, nil, false, nil
	return true
}

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

// copyState visits the replica itself, without its own requests.
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
		p.trust.State(v)
	}
	p.votes.visit(v)
}
