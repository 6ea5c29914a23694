package explore

import "parley"

// state is where a run is.
type state struct {
	root   int
	used   [budgets]uint8 // of what the model allows
	now    parley.Tick    // in synchronous protocols
	past   uint32
	parts  [most]uint32 // components, by the first process of their seats
	flight []uint32     // on the way, sorted: messages, or queues in the order of links
	sum    uint64       // of the shares of past, parts and flight
	wake   parley.Tick  // when the next timer is due, where messages arrive in time

	id    id
	again uint64 // if not 0, the moves to be made: the others have been
	runs  uint64 // that come here
}

// budgets are what a model bounds.
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

// print is the fingerprint of a state with the given sum of shares.
func (s *state) print(sum uint64) uint64 {
	var used uint64
	for i, u := range s.used {
		used |= uint64(u) << (8 * i)
	}
	sum += spread(used) // a sum of multiples would be the same for other budgets
	sum += uint64(s.now)*0xc2b2ae3d27d4eb4f + uint64(s.root)*0x165667b19e3779f9
	return spread(sum)
}

// copyTo copies a state into the memory of another.
func (s *state) copyTo(t *state) {
	flight := t.flight
	*t = *s
	t.flight = append(flight[:0], s.flight...)
}

// header is how many words a packed state has beside its components and messages.
const header = 18

// pack appends a state to a list of words. Its length stands in front and at the end.
func (s *state) pack(list []uint32, n int) []uint32 {
	at := len(list)
	u := func(x uint64) { list = append(list, uint32(x), uint32(x>>32)) }
	list = append(list, uint32(header+n+len(s.flight)), uint32(s.root), s.past)
	var used uint64
	for i, b := range s.used {
		used |= uint64(b) << (8 * i)
	}
	u(used)
	u(uint64(s.now))
	u(s.sum)
	u(uint64(s.wake))
	u(uint64(s.id))
	u(s.again)
	u(s.runs)
	list = append(list, s.parts[:n]...)
	list = append(list, s.flight...)
	return append(list, list[at])
}

// unpack reads a state that stands in front of a list, and returns the rest.
func (s *state) unpack(list []uint32, n int) []uint32 {
	at := 3
	u := func() uint64 {
		x := uint64(list[at]) | uint64(list[at+1])<<32
		at += 2
		return x
	}
	size := list[0]
	s.root, s.past = int(list[1]), list[2]
	used := u()
	for i := range s.used {
		s.used[i] = uint8(used >> (8 * i))
	}
	s.now, s.sum, s.wake = parley.Tick(u()), u(), parley.Tick(u())
	s.id, s.again, s.runs = id(u()), u(), u()
	copy(s.parts[:], list[at:at+n])
	s.flight = append(s.flight[:0], list[at+n:size-1]...)
	return list[size:]
}

// never is when a timer is due that is not set.
const never parley.Tick = 1<<63 - 1

// wakes is when the first timer of a component is due.
func (c *component) wakes() parley.Tick {
	if len(c.timers) == 0 {
		return never
	}
	return c.timers[0].due
}
