// Package om is one process of Byzantine agreement by oral messages, OM(m).
//
// A message is a value with the path by which it came: the lieutenants that have relayed it, the sender last. The
// source is on every path, so it is left out. The message of the source itself has an empty path.
package om

import (
	"bytes"
	"slices"

	"parley"
	"parley/agreement/problem"
	"parley/lockstep"
)

// Value is the only kind of message. Seq: the length of the path. Body: the path, one byte for each process, and then
// the value.
const Value parley.Kind = 1

// New returns the machine of a process.
func New(c problem.Instance, self parley.ID) lockstep.Rounds { return &machine{c: c, self: self} }

// machine is a process. If you add a field that changes, let State visit it.
type machine struct {
	c     problem.Instance // N, M, Source and Default
	self  parley.ID
	value []byte  // at the source: its value
	heard []entry // what came along each path, sorted by path
}

type entry struct{ path, value []byte }

// message returns the message that carries a value along a path.
func message(path, value []byte) parley.Msg {
	return parley.Msg{Kind: Value, Seq: uint64(len(path)), Body: append(bytes.Clone(path), value...)}
}

// split returns the path and the value of a message. It returns false for a message that nobody correct sends.
func split(m parley.Msg) (path, value []byte, ok bool) {
	if m.Kind != Value || m.Seq > uint64(len(m.Body)) {
		return nil, nil, false
	}
	return m.Body[:m.Seq:m.Seq], m.Body[m.Seq:], true
}

// find returns the place of a path in heard, and whether something came along it.
func (p *machine) find(path []byte) (int, bool) {
	return slices.BinarySearchFunc(p.heard, path, func(e entry, path []byte) int { return bytes.Compare(e.path, path) })
}

// along returns the value that came along a path, or the default if none came.
func (p *machine) along(path []byte) []byte {
	i, found := p.find(path)
	if !found {
		return p.c.Default
	}
	return p.heard[i].value
}

// store keeps the first value that comes along a path.
func (p *machine) store(path, value []byte) {
	if i, found := p.find(path); !found {
		p.heard = slices.Insert(p.heard, i, entry{path, value})
	}
}

// on reports whether a process is on a path, is the source, or is this process: it gets nothing along this path.
func (p *machine) on(path []byte, id parley.ID) bool {
	return id == p.self || id == p.c.Source || bytes.IndexByte(path, byte(id)) >= 0
}

// Request gives the source its value.
func (p *machine) Request(_ *parley.Step, m parley.Msg) {
	if m.Kind == parley.Propose && p.self == p.c.Source {
		p.value = m.Body
	}
}

// Emit sends the messages of a round. In round 0, the source sends its value to all others.
func (p *machine) Emit(s *parley.Step, round int) {
	if p.self == p.c.Source {
		if round == 0 {
			s.SendAll(message(nil, p.value))
		}
		return
	}
	// hole: In round r > 0, relay each value that came along a path of length r-1: send it along the path that ends
	// in this process, to each process that is not on the path. See on, message, and s.Send.
	for _, e := range p.heard {
		if len(e.path) != round-1 {
			continue
		}
		for to := range parley.ID(p.c.N) {
			if !p.on(e.path, to) {
				s.Send(to, message(append(bytes.Clone(e.path), byte(p.self)), e.value))
			}
		}
	}
	// end of hole
}

// Absorb takes a message that arrived in a round.
func (p *machine) Absorb(s *parley.Step, round int, from parley.ID, m parley.Msg) {
	path, value, ok := split(m)
	if !ok || p.self == p.c.Source {
		s.Refuse(from, "not a message for this process")
		return
	}
	// hole: Store the value, but only if its path can be right: it has the length of the round, its last process is the
	// sender, and no process on it gets this message. Refuse all other messages. A faulty process can send anything.
	// | _, _ = path, value
	fits := len(path) == round && (round == 0 && from == p.c.Source || round > 0 && parley.ID(path[round-1]) == from)
	for i, id := range path {
		fits = fits && int(id) < p.c.N && !p.on(path[:i], parley.ID(id))
	}
	if !fits {
		s.Refuse(from, "a path that cannot be")
		return
	}
	p.store(path, value)
	// end of hole
}

// Close ends a round. After round m the process decides.
func (p *machine) Close(s *parley.Step, round int) {
	if round != p.c.Last() {
		return
	}
	decision := p.value
	if p.self != p.c.Source {
		decision = p.fold(nil)
	}
	s.Deliver(p.c.Source, parley.Msg{Kind: parley.Decide, Origin: p.c.Source, Body: decision})
}

// fold returns what OM gives this process for a path.
func (p *machine) fold(path []byte) []byte {
	// hole: A path of length m gives the value that came along it. A shorter path gives the majority of the value that
	// came along it, and of what fold gives for the path with one more process, for each process that is not on the
	// path. Without a majority it is the default. See along, on, and parley.Tally with its method Majority.
	// | return p.along(path)
	if len(path) == p.c.Last() {
		return p.along(path)
	}
	var votes parley.Tally
	votes.Vote(p.self, p.along(path))
	for id := range parley.ID(p.c.N) {
		if !p.on(path, id) {
			votes.Vote(id, p.fold(append(bytes.Clone(path), byte(id))))
		}
	}
	return votes.Majority(p.c.Default)
	// end of hole
}

// State visits every field that changes. The explorer needs it to tell states apart.
func (p *machine) State(v *parley.Vars) {
	v.Bytes("value", &p.value)
	parley.Slice(v, "heard", &p.heard, func(_ int, e *entry) {
		v.Bytes("path", &e.path)
		v.Bytes("value", &e.value)
	})
}
