package agree

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/cluster/kernel"
	"parley/cluster/link"
)

// RoundError is the error of an agreement that may not begin: to more nodes than may lie
// messages take longer than a round has room for, so that their silence means nothing; or
// this node's clock runs at another rate than theirs. It is [kernel.ErrRefused].
type RoundError struct {
	Round time.Duration // as it is configured
	Room  time.Duration // for a message
	// Slow are the nodes in question, the slowest first.
	Slow []Slow
	// Drift is by how much this node's clock runs faster than the others', in parts in a
	// million, if that is what is wrong: its rounds are shorter than theirs, or longer.
	Drift float64
	// Needs is the least length of a round that would do, 0 if that is not known.
	Needs time.Duration
}

// Slow is a node to which messages take too long.
type Slow struct {
	Name string
	// Delay is half of the round-trip time that nine of ten pings of the last ten seconds kept
	// to, or that half of them did while there are few, so that a single pause of a node does
	// not count; 0 if the node is not connected.
	Delay time.Duration
}

// Is tells what the error is, too.
func (e *RoundError) Is(target error) bool { return target == kernel.ErrRefused }

func (e *RoundError) Error() string {
	if e.Drift != 0 {
		return fmt.Sprintf("cluster: the clock of this node gains %.0f parts in a million on the others: "+
			"rounds have room for %d", e.Drift, mostDrift)
	}
	var list []string
	for _, s := range e.Slow {
		if s.Delay == 0 {
			list = append(list, s.Name+" is not connected")
		} else {
			list = append(list, fmt.Sprintf("a message to %s takes %v", s.Name, s.Delay.Round(time.Microsecond)))
		}
	}
	text := fmt.Sprintf("cluster: %s: a round of %v has room for %v", strings.Join(list, ", "), e.Round, e.Room)
	if e.Needs > 0 {
		text += fmt.Sprintf("; it must have %v at least", e.Needs.Round(time.Millisecond))
	}
	return text
}

// delays are what was measured last.
type delays struct {
	mu   sync.Mutex
	at   time.Time
	list []Slow // of all other nodes, the slowest first; those that are not connected before
	rate float64
}

// freshness is for how long a measurement of delays is good.
const freshness = 250 * time.Millisecond

// mostDrift is by how many parts in a million clocks may run apart: over the sixteen rounds
// that agreements take at most that is a twentieth of a round. They need not show the same.
const mostDrift = 3000

// measured returns the delays to all other nodes, and by how much this node's clock gains.
func (s *Service) measured() ([]Slow, float64) {
	d := &s.delay
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.list != nil && time.Since(d.at) < freshness {
		return d.list, d.rate
	}
	d.list, d.rate = nil, s.k.Drift()
	for _, p := range s.k.Peers() {
		one := Slow{Name: s.k.Name(p.ID)}
		if p.Connected {
			one.Delay = recentDelay(p.Recent, p.RTT.P50)
		}
		d.list = append(d.list, one)
	}
	late := func(one Slow) time.Duration {
		if one.Delay == 0 {
			return math.MaxInt64
		}
		return one.Delay
	}
	slices.SortFunc(d.list, func(a, b Slow) int { return cmp.Compare(late(b), late(a)) })
	d.at = time.Now()
	return d.list, d.rate
}

// recentDelay is how long a message takes at the moment. A ping in ten is left out, and while
// there are few of them the slower half: one pause would count otherwise.
func recentDelay(r link.RecentRTT, ever time.Duration) time.Duration {
	switch {
	case r.Samples == 0: // of late
		return max(ever/2, 1)
	case r.Samples < 20:
		return max(r.P50/2, 1)
	}
	return max(r.P90/2, 1)
}

// fits tells why rounds are too short for an agreement in spite of m liars. As many nodes
// as that may be slow: a liar may be as slow to answer pings as he likes, and a correct
// one counts as faulty as long as he is.
func (s *Service) fits(m int) error {
	list, rate := s.measured()
	if max(rate, -rate) > mostDrift {
		return &RoundError{Round: s.k.Round, Room: s.k.Round / 10, Drift: rate}
	}
	return tooSlow(list, m, s.k.Round, s.k.Round/10)
}

// tooSlow is fits for delays in their order, the slowest first.
func tooSlow(list []Slow, m int, round, room time.Duration) error {
	slow := 0
	for slow < len(list) && (list[slow].Delay == 0 || list[slow].Delay > room) {
		slow++
	}
	if slow <= m {
		return nil
	}
	err := &RoundError{Round: round, Room: room, Slow: list[:slow]}
	if d := list[m].Delay; d > 0 {
		err.Needs = time.Duration(float64(d) * float64(round) / float64(room))
	}
	return err
}
