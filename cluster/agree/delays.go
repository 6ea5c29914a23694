package agree

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/agreement/stream"
	"parley/cluster/kernel"
	"parley/cluster/link"
)

// RoundError is the error of an agreement that was not started. One reason is that messages to more than m nodes take
// longer than a round allows, so that these nodes would count as silent. Another reason is that this node's clock
// runs at another rate than the clocks of the others. The error matches [kernel.ErrRefused].
type RoundError struct {
	Round time.Duration // as configured
	Room  time.Duration // time that a round allows for a message
	M     int           // how many nodes may be slow or not connected
	// Slow are the slow nodes and the nodes that are not connected, the slowest first.
	Slow []Slow
	// Drift, if not 0, is the cause of the error: this node's clock runs faster than the clocks of the others, by
	// Drift parts per million. If Drift is negative, it runs slower. So the rounds of this node are shorter or longer
	// than the rounds of the others.
	Drift float64
	// Needs is the shortest sufficient round, or 0 if it is not known.
	Needs time.Duration
}

// Slow names a node to which messages take too long.
type Slow struct {
	Name string
	// Delay is half of a round-trip time of the last 10 s. It uses the 90th percentile of the pings, or the
	// median while there are few pings, so that a single pause of a node does not count. Delay is 0 if the
	// node is not connected.
	Delay time.Duration
}

// Is reports whether target is kernel.ErrRefused.
func (e *RoundError) Is(target error) bool { return target == kernel.ErrRefused }

// Disconnected reports whether more than M nodes are not connected. If so, another node may be able to start
// the agreement.
func (e *RoundError) Disconnected() bool { return len(e.Slow) > e.M && e.Slow[e.M].Delay == 0 }

func (e *RoundError) Error() string {
	if e.Drift != 0 {
		way := "faster"
		if e.Drift < 0 {
			way = "slower"
		}
		return fmt.Sprintf("cluster: refused: the clock of this node runs %.0f ppm %s than those of the others, but rounds "+
			"allow %d ppm: repair the clock of this computer", max(e.Drift, -e.Drift), way, mostDrift)
	}
	var away, slow []string
	for _, s := range e.Slow {
		if s.Delay == 0 {
			away = append(away, s.Name)
		} else {
			slow = append(slow, fmt.Sprintf("messages to %s take %v", s.Name, s.Delay.Round(time.Microsecond)))
		}
	}
	text := "cluster: refused: "
	if len(away) > 0 {
		is := map[bool]string{true: "is", false: "are"}[len(away) == 1]
		text += fmt.Sprintf("%s %s not connected, and an agreement with m = %d can do without %d: start the missing nodes",
			strings.Join(away, ", "), is, e.M, e.M)
	}
	if len(slow) > 0 {
		if len(away) > 0 {
			text += "; "
		}
		text += fmt.Sprintf("%s, but a %v round allows %v", strings.Join(slow, ", "), e.Round, e.Room)
	}
	if e.Needs > 0 {
		text += fmt.Sprintf(": set round to at least %v", e.Needs.Round(time.Millisecond))
	}
	return text
}

// delays are the latest measurements.
type delays struct {
	mu   sync.Mutex
	at   time.Time
	list []Slow // of all other nodes: first those that are not connected, then the slowest first
	rate float64
}

// freshness is how long a measurement of delays is used.
const freshness = 250 * time.Millisecond

// mostDrift is by how many parts per million clocks may drift apart: over the sixteen rounds that an agreement
// takes at most, that is 1/20 of a round. Clocks need not show the same time.
const mostDrift = 3000

// measured returns the delays to all other nodes, and by how much this node's clock gains on theirs.
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

// recentDelay returns how long a message takes at present. It ignores the slowest tenth of the pings, and the
// slower half while there are few, because otherwise a single pause would count.
func recentDelay(r link.RecentRTT, ever time.Duration) time.Duration {
	switch {
	case r.Samples == 0: // no recent ones
		return max(ever/2, 1)
	case r.Samples < 20:
		return max(r.P50/2, 1)
	}
	return max(r.P90/2, 1)
}

// fits returns an error if rounds are too short for an agreement. Up to m nodes may be slow: a faulty node can delay
// its answers to pings at will, and a slow correct node counts as faulty. Without rounds, only nodes that are not
// connected count.
func (s *Service) fits(t stream.Key) error {
	list, rate := s.measured()
	switch {
	case !t.Timed():
		return tooSlow(list, t.M, s.k.Round, math.MaxInt64)
	case max(rate, -rate) > mostDrift:
		return &RoundError{Round: s.k.Round, Room: s.k.Round / 10, M: t.M, Drift: rate}
	}
	return tooSlow(list, t.M, s.k.Round, s.k.Round/10)
}

// tooSlow is fits for sorted delays, the slowest first.
func tooSlow(list []Slow, m int, round, room time.Duration) error {
	slow := 0
	for slow < len(list) && (list[slow].Delay == 0 || list[slow].Delay > room) {
		slow++
	}
	if slow <= m {
		return nil
	}
	err := &RoundError{Round: round, Room: room, M: m, Slow: list[:slow]}
	if d := list[m].Delay; d > 0 {
		err.Needs = time.Duration(float64(d) * float64(round) / float64(room))
	}
	return err
}
