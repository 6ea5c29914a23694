package rsm

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"parley"
)

// replica is the part of the state that all replicas share at one position.
type replica struct {
	c        Config
	app      Application
	setup    Setup
	position uint64 // number of applied commands and setup changes
	sessions sessions
	broke    string // scratch: the application's panic in this clause
}

func newReplica(c Config) replica {
	return replica{c: c, app: c.New(), setup: c.Setup, sessions: sessions{ordered: c.ordered}}
}

// apply applies a command of a client, and keeps the answer.
func (r *replica) apply(x *session, number uint64, command []byte) {
	r.position++
	r.sessions.kept -= len(x.answer)
	x.last, x.at, x.answer = number, r.position, r.perform(command)
	if r.c.ordered {
		x.digest = digest(command)
	}
	r.sessions.kept += len(x.answer)
}

// perform has the application apply a command.
func (r *replica) perform(command []byte) []byte {
	if r.c.Recover {
		defer func() {
			if why := recover(); why != nil {
				r.broke = fmt.Sprintf("its application panicked: %v", why)
			}
		}()
	}
	return r.app.Apply(command)
}

// trim forgets sessions beyond the limits.
func (r *replica) trim() { r.sessions.trim(r.c.Sessions, r.c.Answers) }

// one applies one command of a pack, unless it was applied before.
func (r *replica) one(x entry) Reply {
	if x.client == 0 {
		r.position++
		reply := Reply{Status: Applied, Position: r.position}
		if x.number == 0 {
			y := r.sessions.of(Client(r.position))
			y.at, y.owner = r.position, slices.Clone(x.command)
			r.trim()
		} else {
			reply.Answer = r.perform(x.command)
		}
		return reply
	}
	i, found := r.sessions.find(x.client)
	if !found {
		return Reply{Status: Expired}
	}
	y := &r.sessions.list[i]
	switch {
	case x.number < y.last:
		return Reply{Status: Old}
	case x.number == y.last && r.c.ordered && !bytes.Equal(y.digest, digest(x.command)):
		return Reply{Status: Taken}
	case x.number > y.last:
		r.apply(y, x.number, x.command)
	}
	reply := Reply{Status: Applied, Position: y.at, Answer: y.answer}
	r.trim()
	return reply
}

// digest identifies a command of a session.
func digest(command []byte) []byte {
	h := sha256.Sum256(command)
	return h[:16]
}

// save returns everything that later answers depend on.
func (r *replica) save() []byte { return parley.Save(&state{of: r}, 0, nil) }

// hash returns a fingerprint of the state that replicas compare.
func (r *replica) hash() uint64 { return hashOf(parley.Save(&state{of: r, hashed: true}, 0, nil)) }

// load takes over what another replica saved. It returns whether body is valid.
func (r *replica) load(body []byte) bool {
	fresh := newReplica(r.c)
	if !parley.Load(&state{of: &fresh}, 0, body) {
		return false
	}
	*r = fresh
	return true
}

// state visits a replica.
type state struct {
	parley.Base
	of     *replica // scratch
	hashed bool     // scratch: save the application's hash instead of its snapshot, if it has one
}

func (x *state) State(v *parley.Vars) {
	r := x.of
	if v.Skips() {
		return // saved as durable state only over a durable group
	}
	parley.Num(v, "position", &r.position)
	r.setup.state(v)
	r.sessions.visit(v, r.position)
	if shown := v.Shown(); shown != nil {
		if text, is := r.app.(fmt.Stringer); is {
			shown.Derive(parley.Variable{
				Name: "holds", Kind: parley.ReplicaState, Value: text.String(), Place: strconv.FormatUint(r.position, 10),
			})
		}
	}
	var b []byte
	h, keeps := r.app.(Hasher)
	switch {
	case x.hashed && keeps:
		b = binary.LittleEndian.AppendUint64(nil, h.Hash())
	case !v.Loading():
		b = r.app.Snapshot()
	}
	v.Bytes("application", &b)
	if v.Loading() && !r.app.Restore(b) || !r.setup.of(r.c.N) ||
		!inOrder(r.sessions.list, func(x session) uint64 { return x.client }) {
		v.Fail()
	}
}
