package kernel

import (
	"cmp"
	"slices"
	"sync/atomic"

	"parley/membership/expel"
)

// State is the state of a node.
type State string

// The states of a node.
const (
	Running  State = "running"
	Draining State = "draining" // it refuses new requests
	Leaving  State = "leaving"
	Left     State = "left"     // it is closed, too
	Expelled State = "expelled" // it may start again as another incarnation
)

// states are the states in the order in which a node reaches them. Left is the last one: it tells a program that
// serves the node that it can end, even if the node was expelled before.
var states = [...]State{Running, Draining, Leaving, Expelled, Left}

// Standing is the state of a node. Its zero value is a running node.
type Standing struct {
	code atomic.Uint32         // of the state
	shut atomic.Uint64         // from what this node is expelled: expel.Views or expel.All
	why  atomic.Pointer[error] // error of all calls of a failed node
}

// Became sets the node's state, unless a later one is set.
func (s *Standing) Became(next State) {
	code := uint32(slices.Index(states[:], next))
	for now := s.code.Load(); now < code && !s.code.CompareAndSwap(now, code); now = s.code.Load() {
	}
}

// State returns the node's state.
func (s *Standing) State() State { return states[s.code.Load()] }

// Break sets why the node has failed. Only the first reason counts.
func (s *Standing) Break(why error) { s.why.CompareAndSwap(nil, &why) }

// Broken returns why the node has failed, nil if it has not.
func (s *Standing) Broken() error {
	if why := s.why.Load(); why != nil {
		return *why
	}
	return nil
}

// Closed returns the error of calls to a node that is closed or has failed.
func (s *Standing) Closed() error { return cmp.Or(s.Broken(), ErrClosed) }

// Shut sets from what the others have expelled this node: [expel.Views] or [expel.All].
func (s *Standing) Shut(from uint64) { s.shut.Store(from) }

// ShutFrom returns from what the others have expelled this node; 0: nothing.
func (s *Standing) ShutFrom() uint64 { return s.shut.Load() }

// Takes returns an error if the node refuses new requests. If liars is true, this is about requests to services that
// tolerate Byzantine faults. Otherwise it is about requests to services that tolerate only crashes.
func (s *Standing) Takes(liars bool) error {
	if why := s.Broken(); why != nil {
		return why
	}
	switch s.State() {
	case Draining, Leaving:
		return ErrDraining
	case Left:
		return ErrClosed
	case Expelled:
		if !liars || s.ShutFrom() == expel.All {
			return ErrExpelled
		}
	}
	return nil
}
