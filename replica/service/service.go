package service

import (
	"encoding/binary"
	"fmt"

	"parley"
	"parley/broadcast/problem"
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
	c        Config
	app      Application
	setup    Setup
	position uint64    // commands applied, changes of the setup too
	sessions []session // by client
	kept     int       // scratch: bytes of the answers in there; counted anew when loaded
	stopped  bool
	votes    []vote // by position, of the last few that were compared

	fetch    *fetch // not nil: the state of this copy is still to come
	marks    uint64 // that it asked for in this life
	members  parley.Set
	offers   []offer
	broke    string      // scratch: what the application panicked with in this clause
	compares *comparison // not nil: a view has begun, and not all have told what they have
	word     parley.Msg  // what it told the others of that
	doubtful bool        // the state has been compared with that of no other, or is not that

	// This process as a client.
	starts problem.Incarnation // without transfer its lives
	life   uint64              // which tells its lives apart; 0: not known yet
	in     bool                // what it broadcasts is carried
	done   uint64              // own commands applied
	queue  [][]byte            // own commands; the first has number done+1 and is under way if in
}

// Start: without transfer the disk tells lives apart. With it the first view does in
// which the process is: another life joins in a later one, even if the disk is lost.
func (p *process) Start(s *parley.Step) {
	if s.Restart && p.stopped {
		s.Indicate(parley.Msg{Kind: Stopped, Origin: s.Self, Seq: p.position, Body: []byte("it had before a restart")})
	}
	if !p.c.Transfer {
		p.starts.Begin(s)
		p.life, p.in = uint64(p.starts), true
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
		p.hold(s, m)
	case m.Kind == parley.Carried && len(p.queue) >= Queue:
		s.Refuse(s.Self, "too many commands of its own")
	case m.Kind == parley.Carried:
		p.queue = append(p.queue, m.Body)
		if len(p.queue) == 1 {
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
	if p.in && p.fetch == nil && len(p.queue) > 0 {
		s.Broadcast(parley.Msg{Kind: apply, Value: client(s.Self, p.life), Seq: p.done + 1, Body: p.queue[0]})
	}
}

// receive: upon delivery beneath, in the order of the broadcast.
func (p *process) receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind == group.Restored:
		p.restore(s, m)
	case m.Kind == group.Out:
		p.in, p.compares = p.in && !p.c.Transfer, nil
		if p.fetch != nil {
			p.fetch = &fetch{} // it is told anew what to do when it is back
		}
	case m.Kind < parley.Local && !s.Carried:
		p.link(s, from, m)
	case p.stopped && m.Kind == mark:
		p.without(s, from, m)
	case m.Kind == missing && p.c.Liars > 0:
		p.repeat(s, m)
	case p.stopped && m.Kind == parley.View && p.c.Liars > 0:
		p.begins(s, m)
	case p.stopped:
	case m.Kind == parley.View && p.c.Transfer:
		p.view(s, m)
	case m.Kind == group.Wanted:
		// A joiner gets all that later answers depend on. Who has not got it itself leaves the
		// joiner to ask somebody else.
		if p.fetch == nil {
			s.Request(parley.Msg{Kind: group.State, Seq: m.Seq, Body: p.given()})
		}
	case m.Kind >= parley.Local:
	case m.Kind == stand && p.c.Liars > 0:
		p.stands(s, from, m)
	case p.fetch != nil && !p.comparing():
		p.wait(s, from, m)
	default:
		p.delivered(s, from, m)
	}
}

// delivered is a message in its place in the order.
func (p *process) delivered(s *parley.Step, from parley.ID, m parley.Msg) {
	switch m.Kind {
	case apply:
		p.apply(s, from, m)
	case check:
		p.check(s, from, m.Seq, m.Value)
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
// that come back from a log are those of another life.
func (p *process) view(s *parley.Step, m parley.Msg) {
	p.begins(s, m)
	if s.Restart {
		return
	}
	p.in = true
	if p.life == 0 {
		p.life = m.Seq
	}
	if p.fetch != nil && !p.comparing() {
		p.seen(s)
	}
	p.next(s)
}

// restore: a process that joins takes over the state of its sponsor, and forgets what
// it knew, but for its own commands: reintegration. A state is never empty: if nothing
// comes the group beneath gives no states.
func (p *process) restore(s *parley.Step, m parley.Msg) {
	p.in, p.fetch, p.compares = !p.c.Transfer, nil, nil
	body := m.Body
	switch {
	case len(body) == 0:
		p.stop(s, "no state came with the admission: the group gives none")
		return
	case p.c.Piece > 0 && body[0] == marked:
		p.stopped, p.doubtful, p.fetch = false, false, &fetch{}
		return
	case p.c.Piece > 0 && body[0] == whole:
		body = body[1:]
	}
	if !p.replace(body) {
		p.stop(s, "the state of the sponsor cannot be read")
	}
	p.doubtful = p.c.Liars > 0
}

// replace takes over the state of another copy, and tells whether it is one.
func (p *process) replace(body []byte) bool {
	fresh := &process{
		c: p.c, app: p.c.New(), starts: p.starts, life: p.life, in: p.in, done: p.done, queue: p.queue,
		marks: p.marks, members: p.members, offers: p.offers, compares: p.compares, word: p.word,
	}
	if !parley.Load(&state{of: fresh}, 0, body) {
		return false
	}
	*p = *fresh
	return true
}

// stop: who does not have the state that the others have answers nothing.
func (p *process) stop(s *parley.Step, why string) {
	if !p.stopped {
		p.stopped = true // what it has under way may be applied: it asks that again if it is back
		s.Indicate(parley.Msg{Kind: Stopped, Origin: s.Self, Seq: p.position, Body: []byte(why)})
	}
}

// apply: upon a command, apply it unless it has been, and answer.
func (p *process) apply(s *parley.Step, from parley.ID, m parley.Msg) {
	if !numbered(m.Seq) || isOpened(m.Value) || m.Value >= processes && ownerOf(m.Value) != from {
		s.Refuse(from, "command without a number, or in the name of another")
		return
	}
	x := p.session(m.Value)
	switch {
	case m.Seq > x.last:
		if p.applies(x, m.Seq, m.Body); p.brokeOff(s) {
			return
		}
	case m.Seq < x.last:
		s.Refuse(from, "command that was answered long ago")
		return
	}
	answer := parley.Msg{Kind: Answer, Origin: from, Seq: x.at, Value: m.Value, Body: x.answer}
	p.trim()
	own := m.Value == client(s.Self, p.life)
	p.answer(s, answer, p.setup.Active.Has(s.Self) && (!own || m.Seq > p.done))
	if own && m.Seq == p.done+1 && len(p.queue) > 0 {
		p.done++
		p.queue = p.queue[1:]
		p.next(s)
	}
}

// applies carries out a command of a client, and keeps the answer.
func (p *process) applies(x *session, number uint64, command []byte) {
	p.advance()
	p.kept -= len(x.answer)
	x.last, x.at, x.answer = number, p.position, p.perform(command)
	p.kept += len(x.answer)
}

// perform has the application carry out a command.
func (p *process) perform(command []byte) []byte {
	if p.c.Recover {
		defer func() {
			if why := recover(); why != nil {
				p.broke = fmt.Sprintf("its application panicked: %v", why)
			}
		}()
	}
	return p.app.Apply(command)
}

// brokeOff stops a copy whose application has panicked, and tells whether it did. Whatever it
// had changed by then, the state is not served nor given to anybody.
func (p *process) brokeOff(s *parley.Step) bool {
	if p.broke == "" {
		return false
	}
	p.stop(s, p.broke)
	return true
}

// answer: at once, or when enough copies have the same state. A spare says nothing, and
// nobody answers a command of its own twice.
func (p *process) answer(s *parley.Step, answer parley.Msg, tell bool) {
	switch {
	case p.setup.Checked:
		v := p.compare(s)
		if tell {
			v.wait(answer)
			p.release(s, v)
		}
		return
	case tell:
		p.say(s, answer)
	}
	p.everySo(s)
}

// change: upon a setup, what follows is done under it.
func (p *process) change(s *parley.Step, from parley.ID, body []byte) {
	setup, ok := readSetup(body, p.c.N)
	if !ok || p.c.Liars > 0 {
		s.Refuse(from, "setup that is none, or may be that of a liar")
		return
	}
	p.advance()
	p.setup = setup
	p.everySo(s)
}

// hash is that of all that later answers depend on.
func (p *process) hash() uint64 {
	return hashOf(parley.Save(&state{of: p, hashed: true}, 0, nil))
}

func (p *process) State(v *parley.Vars) {
	p.starts.State(v)
	if p.c.Durable {
		v.Durable(func() { p.copyState(v) })
	} else {
		p.copyState(v)
	}
	parley.Num(v, "life", &p.life)
	v.Bool("in", &p.in)
	if p.c.Piece > 0 {
		parley.Num(v, "marks", &p.marks)
		v.Set("members", &p.members)
		parley.Slice(v, "offers", &p.offers, func(_ int, o *offer) { o.visit(v) })
		if p.fetch != nil {
			v.Machine("fetch", p.fetch)
		}
	}
	parley.Num(v, "done", &p.done)
	parley.Slice(v, "queue", &p.queue, func(_ int, b *[]byte) { v.Bytes("command", b) })
}

// copyState visits what a copy is, beside what it asks itself.
func (p *process) copyState(v *parley.Vars) {
	(&state{of: p}).State(v)
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
		p.compareState(v)
	}
	parley.Slice(v, "votes", &p.votes, func(_ int, x *vote) { x.state(v) })
	if !inOrder(p.votes, func(x vote) uint64 { return x.position }) {
		v.Fail()
	}
}

// state is the part of a copy that is replicated.
type state struct {
	parley.Base
	of     *process // scratch
	hashed bool     // scratch: the hash of the application stands for it, if it has one
}

func (x *state) State(v *parley.Vars) {
	p := x.of
	if v.Skips() {
		return // it is durable over a durable group alone
	}
	parley.Num(v, "position", &p.position)
	p.setup.state(v)
	kept := 0
	parley.Slice(v, "sessions", &p.sessions, func(_ int, x *session) {
		x.state(v)
		if len(x.owner) > MaxOwner {
			v.Fail()
		}
		if !numbered(x.last) && (x.last != 0 || !isOpened(x.client)) || x.at == 0 || x.at > p.position {
			v.Fail()
		}
		kept += len(x.answer)
	})
	p.kept = kept
	var b []byte
	h, keeps := p.app.(Hasher)
	switch {
	case x.hashed && keeps:
		b = binary.LittleEndian.AppendUint64(nil, h.Hash())
	case !v.Loading():
		b = p.app.Snapshot()
	}
	v.Bytes("application", &b)
	if v.Loading() && !p.app.Restore(b) || !p.setup.of(p.c.N) ||
		!inOrder(p.sessions, func(x session) uint64 { return x.client }) {
		v.Fail()
	}
}
