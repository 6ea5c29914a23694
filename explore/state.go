package explore

import (
	"encoding/binary"

	"parley"
	"parley/explore/internal/timer"
)

// state is one state of a run.
type state struct {
	root    int
	used    [8]uint8    //      of what the model allows
	now     parley.Tick // in synchronous protocols
	history uint32
	parts   [most]uint32 // numbers of process states, by the first process of their seats
	flight  []uint32     // in flight, sorted: messages, or queues in the order of links
	sum     uint64       // of the shares of history, parts and flight
	wake    parley.Tick  // when the next timer is due, where messages arrive in time

	id    id
	again uint64 // if not 0, the deliveries still to be explored
	runs  uint64 // the number of runs that lead here
}

// The faults that a model bounds.
const (
	crashes = iota
	restarts
	disks
	losses
	doubles
	suspicions
	timeouts
	budgets
)

func (m *Model) limit(budget int) int {
	return [budgets]int{m.Crashes, m.Restarts, m.LostDisks, m.Losses, m.Doubles, m.FalseSuspicions, m.Timeouts}[budget]
}

// print returns the fingerprint of a state with the given sum of shares.
func (s *state) print(sum uint64) uint64 {
	sum += spread(binary.LittleEndian.Uint64(s.used[:])) // hashed: sums of multiples collide
	sum += uint64(s.now)*0xc2b2ae3d27d4eb4f + uint64(s.root)*0x165667b19e3779f9
	return spread(sum)
}

// copyTo copies a state into t, reusing its memory.
func (s *state) copyTo(t *state) {
	flight := t.flight
	*t = *s
	t.flight = append(flight[:0], s.flight...)
}

// packed is the number of words of a packed state before its process states and messages.
const packed = 16

// pack appends a state to a list of words. Its length is the first and the last word.
func (s *state) pack(list []uint32, n int) []uint32 {
	size, used := uint32(packed+n+1+len(s.flight)), binary.LittleEndian.Uint64(s.used[:])
	list = append(list, size, uint32(s.root), s.history, uint32(s.id), uint32(used), uint32(used>>32),
		uint32(s.now), uint32(s.now>>32), uint32(s.sum), uint32(s.sum>>32), uint32(s.wake), uint32(s.wake>>32),
		uint32(s.again), uint32(s.again>>32), uint32(s.runs), uint32(s.runs>>32))
	list = append(list, s.parts[:n]...)
	list = append(list, s.flight...)
	return append(list, size)
}

// unpack reads the state at the start of a list, and returns the rest.
func (s *state) unpack(list []uint32, n int) []uint32 {
	u := func(at int) uint64 { return uint64(list[at]) | uint64(list[at+1])<<32 }
	size := list[0]
	s.root, s.history, s.id = int(list[1]), list[2], id(list[3])
	binary.LittleEndian.PutUint64(s.used[:], u(4))
	s.now, s.sum, s.wake = parley.Tick(u(6)), u(8), parley.Tick(u(10))
	s.again, s.runs = u(12), u(14)
	copy(s.parts[:], list[packed:packed+n])
	s.flight = append(s.flight[:0], list[packed+n:size-1]...)
	return list[size:]
}

// nextDue returns when the first timer of a process state is due.
func (c *processState) nextDue() parley.Tick {
	if len(c.timers) == 0 {
		return timer.Never
	}
	return c.timers[0].Due
}
