package kernel

import (
	"cmp"
	"slices"
	"sync/atomic"

	"parley/membership/expel"
)

// State is what a node does.
type State string

// The states of a node.
const (
	Running  State = "running"
	Draining State = "draining" // it takes no new requests
	Leaving  State = "leaving"
	Left     State = "left"     // it is closed, too
	Expelled State = "expelled" // it may come back as another life
)

// states are the states in the order in which a node comes to them. Left is the last one: by it a program that
// serves the node knows that it can end, also where the node was expelled before.
var states = [...]State{Running, Draining, Leaving, Expelled, Left}

// Standing is how a node stands. Its zero value stands for a node that runs.
type Standing struct {
	code atomic.Uint32         // of the state
	shut atomic.Uint64         // what this node is expelled from: expel.Views or expel.All
	why  atomic.Pointer[error] // what calls of a node that can not go on fail with
}

// Became makes a state the node's, unless a later one is.
func (s *Standing) Became(next State) {
	code := uint32(slices.Index(states[:], next))
	for now := s.code.Load(); now < code && !s.code.CompareAndSwap(now, code); now = s.code.Load() {
	}
}

// State returns what the node does.
func (s *Standing) State() State { return states[s.code.Load()] }

// Break notes why the node can not go on. Only the first reason counts.
func (s *Standing) Break(why error) { s.why.CompareAndSwap(nil, &why) }

// Broken returns why the node can not go on, nil if it can.
func (s *Standing) Broken() error {
	if why := s.why.Load(); why != nil {
		return *why
	}
	return nil
}

// Closed returns the error of what is asked of a node that is closed, or has broken.
func (s *Standing) Closed() error { return cmp.Or(s.Broken(), ErrClosed) }

// Shut notes what the others have expelled this node from: [expel.Views] or [expel.All].
func (s *Standing) Shut(from uint64) { s.shut.Store(from) }

// ShutFrom returns what the others have expelled this node from; 0: nothing.
func (s *Standing) ShutFrom() uint64 { return s.shut.Load() }

// Takes tells why the node takes no new request, nil if it does: of what knows of crashes alone, or of what is to
// hold in spite of liars.
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
