// Package service replicates a deterministic state machine over an ordered
// broadcast.
//
// Problem: copies of one service at several processes are to stay the same and to
// answer as one, although processes crash and clients repeat what they have asked.
//
// Model: that of the broadcast beneath, as in stack.New(timestamp, service). If it
// delivers in one total order the copies are the same at each position; over FIFO or
// causal order they part as soon as concurrent commands do not commute, as with the
// lecture's bank account.
//
// Source: the lecture, the problem of replication: replica consistency and
// determinism, recovery and reintegration, redundancy; F. B. Schneider, Implementing
// fault-tolerant services using the state machine approach, 1990.
//
// Why it works: the state after k commands is a function of the first k commands,
// and these are the same everywhere. A client numbers its commands, and the state
// holds the last number of each client with the answer, so that one which is asked
// again is answered again and applied once. Every so often each copy broadcasts a
// hash of its state: who has another one than the majority is named, and stops.
package service

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"parley"
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
	// Command is a Request: Value is the client, Seq the number of its command, from
	// 1 on, and Body the command. One with an earlier number is answered only if it
	// is the last of that client, and never applied. See also [parley.Carried], with
	// the process itself as the client.
	Command = parley.Local + 0x20 + iota
	// Answer is a delivery: Seq is the position of the command, Value the client,
	// Origin the process that was asked, Body the answer.
	Answer
	// Configure is a Request to change the Setup by an ordered command: Body is the
	// Setup, by [Setup.Append].
	Configure
)

// The indications of a service.
const (
	// Diverged tells that the state of Origin at position Seq is not that of the
	// majority. If that is the process itself it has stopped.
	Diverged = parley.Indication + 0x30 + iota
	// Differs tells that the state of Origin at position Seq is not this process's
	// own, and that there is no majority to tell whose is wrong.
	Differs
)

// The messages.
const (
	apply  parley.Kind = iota + 1 // Value: the client; Seq: its number; Body: the command
	check                         // Seq: a position; Value: the hash of the state there
	change                        // Body: a Setup
)

// process is one copy of the service.
type process struct {
	parley.Base
	c        Config
	app      Application
	setup    Setup
	position uint64    // commands applied
	sessions []session // by client
	own      uint64    // number of the last command of this process's own as a client
	stopped  bool
	votes    []vote // by position, of the last few that are checked

	unreadable bool // what was loaded was no state of the application
}

// session is what is known of a client.
type session struct {
	client uint64
	last   uint64 // the number of its last command
	at     uint64 // and the position of that
	answer []byte
}

// session returns that of a client, a new one if there is none.
func (p *process) session(client uint64) *session {
	i, found := slices.BinarySearchFunc(p.sessions, client, func(x session, c uint64) int {
		return cmp.Compare(x.client, c)
	})
	if !found {
		p.sessions = slices.Insert(p.sessions, i, session{client: client})
	}
	return &p.sessions[i]
}

// lastOf is the number of a client's last command, 0 if it has none.
func (p *process) lastOf(client uint64) uint64 {
	for i := range p.sessions {
		if p.sessions[i].client == client {
			return p.sessions[i].last
		}
	}
	return 0
}

// trim forgets the client that was heard of longest ago, if there are too many.
func (p *process) trim() {
	if len(p.sessions) <= p.c.Sessions {
		return
	}
	oldest := 0
	for i := range p.sessions {
		if p.sessions[i].at < p.sessions[oldest].at {
			oldest = i
		}
	}
	p.sessions = slices.Delete(p.sessions, oldest, oldest+1)
}

// Request: to have a command applied, broadcast it.
func (p *process) Request(s *parley.Step, m parley.Msg) {
	switch {
	case p.stopped:
		s.Refuse(s.Self, "request to a copy that has stopped")
	case m.Kind == parley.Carried:
		p.own = max(p.own, p.lastOf(uint64(s.Self))) + 1
		s.Broadcast(parley.Msg{Kind: apply, Value: uint64(s.Self), Seq: p.own, Body: m.Body})
	case m.Kind == Command && m.Seq > 0:
		s.Broadcast(parley.Msg{Kind: apply, Value: m.Value, Seq: m.Seq, Body: m.Body})
	case m.Kind == Configure:
		if _, ok := readSetup(m.Body, p.c.N); !ok {
			s.Refuse(s.Self, "request with a setup that is none")
			return
		}
		s.Broadcast(parley.Msg{Kind: change, Body: m.Body})
	default:
		s.Refuse(s.Self, "request of another kind")
	}
}

// Receive: upon delivery beneath, in the order of the broadcast.
func (p *process) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind == group.Restored:
		p.restore(s, m)
	case p.stopped:
	case m.Kind == group.Wanted:
		// A joiner gets all that later answers depend on.
		s.Request(parley.Msg{Kind: group.State, Seq: m.Seq, Body: parley.Save(&state{of: p}, 0, nil)})
	case m.Kind >= parley.Local:
	case m.Kind == apply && m.Seq > 0:
		p.apply(s, from, m)
	case m.Kind == check:
		p.check(s, from, m.Seq, m.Value)
	case m.Kind == change:
		setup, ok := readSetup(m.Body, p.c.N)
		if !ok {
			s.Refuse(from, "setup that is none")
			return
		}
		p.setup = setup
	default:
		s.Refuse(from, "no message of a service")
	}
}

// restore: a process that joins takes over the state of its sponsor, and forgets what
// it knew: reintegration.
func (p *process) restore(s *parley.Step, m parley.Msg) {
	fresh := &process{c: p.c, app: p.c.New()}
	if !parley.Load(&state{of: fresh}, 0, m.Body) || fresh.unreadable {
		p.stopped = true
		s.Refuse(s.Self, "state of a sponsor that cannot be read")
		return
	}
	*p = *fresh
}

// apply: upon a command, apply it unless it has been, and answer.
func (p *process) apply(s *parley.Step, from parley.ID, m parley.Msg) {
	x := p.session(m.Value)
	switch {
	case m.Seq > x.last:
		p.position++
		x.last, x.at, x.answer = m.Seq, p.position, p.app.Apply(m.Body)
	case m.Seq < x.last:
		s.Refuse(from, "command that was answered long ago")
		return
	}
	answer := parley.Msg{Kind: Answer, Origin: from, Seq: x.at, Value: m.Value, Body: x.answer}
	p.trim()
	switch {
	case !p.setup.Active.Has(s.Self): // a spare applies, and says nothing
	case !p.setup.Checked:
		s.Deliver(from, answer)
		if p.c.Every > 0 && p.position%p.c.Every == 0 {
			p.ask(s)
		}
	default:
		p.ask(s)
		p.vote(p.position).answers = append(p.vote(p.position).answers, answer)
	}
}

// hash is that of all that later answers depend on.
func (p *process) hash() uint64 {
	h := sha256.Sum256(parley.Save(&state{of: p}, 0, nil))
	return binary.LittleEndian.Uint64(h[:]) | 1 // never 0
}

func (p *process) State(v *parley.Vars) {
	(&state{of: p}).State(v)
	v.Bool("unreadable", &p.unreadable)
	v.Bool("stopped", &p.stopped)
	parley.Num(v, "own", &p.own)
	parley.Slice(v, "votes", &p.votes, func(_ int, x *vote) { x.state(v) })
}

// state is the part of a copy that is replicated.
type state struct {
	parley.Base
	of *process // scratch
}

func (x *state) State(v *parley.Vars) {
	p := x.of
	parley.Num(v, "position", &p.position)
	p.setup.state(v)
	parley.Slice(v, "sessions", &p.sessions, func(_ int, x *session) {
		parley.Num(v, "client", &x.client)
		parley.Num(v, "last", &x.last)
		parley.Num(v, "at", &x.at)
		v.Bytes("answer", &x.answer)
	})
	var b []byte
	if !v.Loading() {
		b = p.app.Snapshot()
	}
	v.Bytes("application", &b)
	if v.Loading() && !p.app.Restore(b) {
		p.app, p.unreadable = p.c.New(), true
	}
}
