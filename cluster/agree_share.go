package cluster

import (
	"fmt"
	"slices"
	"time"

	"parley"
	"parley/agreement/stream"
)

// Agreement is a kind of agreement: by an algorithm, in spite of M liars.
type Agreement struct {
	Algorithm Algorithm
	M         int
}

func (a Agreement) String() string { return fmt.Sprintf("%v m=%d", a.Algorithm, a.M) }

// agreements are those that the nodes have, by default all that there are among so many, EIG
// in spite of the most liars first.
func (c Config) agreements() []Agreement {
	if len(c.Agreements) > 0 {
		return c.Agreements
	}
	first := Agreement{EIG, EIG.Most(len(c.Members))}
	all := []Agreement{first}
	for a := range stream.Algorithms {
		most := a.Most(len(c.Members))
		for m := min(1, most); m <= most; m++ {
			if one := (Agreement{a, m}); one != first {
				all = append(all, one)
			}
		}
	}
	return all
}

// CheckAgreements tells what is wrong with those of the configuration.
func (c Config) CheckAgreements() error {
	for i, a := range c.Agreements {
		if err := (stream.Key{Algorithm: a.Algorithm, M: a.M}).Check(len(c.Members)); err != nil {
			return fmt.Errorf("agreements by %v: %w", a, err)
		}
		if slices.Contains(c.Agreements[:i], a) {
			return fmt.Errorf("agreements by %v are named twice", a)
		}
	}
	return nil
}

// share divides a node among its streams. A liar can have slots begin in all of them, as many
// as the window lets, and hold them up until their time is over: all slots of all streams
// together must not take more memory than the node has for them, nor more time. The streams
// of the first agreement have half of it, and those of all others the other half.
type share struct {
	n     int
	round parley.Tick
	list  []Agreement
	parts int // streams
	first int // those of them of the first agreement
}

func (n *Node) share() share {
	l := &n.streams
	l.shared.Do(func() {
		l.share = share{n: len(n.c.Members), round: parley.Tick(n.c.Round), list: n.c.agreements()}.counted()
	})
	return l.share
}

func (s share) counted() share {
	for i, a := range s.list {
		for source := range parley.ID(s.n) {
			if (stream.Key{Algorithm: a.Algorithm, M: a.M, Source: source}).Check(s.n) == nil {
				s.parts++
			}
		}
		if (stream.Key{Algorithm: a.Algorithm, M: a.M, Source: stream.Everyone}).Check(s.n) == nil {
			s.parts++
		}
		if i == 0 {
			s.first = s.parts
		}
	}
	return s
}

// part is which part of all that there is a stream has: one of so many.
func (s share) part(t stream.Key) int {
	switch others := s.parts - s.first; {
	case others == 0:
		return s.parts
	case s.list[0] == Agreement{t.Algorithm, t.M}:
		return 2 * s.first
	default:
		return 2 * others
	}
}

// allows tells why a stream is none of the node's.
func (s share) allows(t stream.Key) error {
	if err := t.Check(s.n); err != nil {
		return err
	}
	if !slices.Contains(s.list, Agreement{t.Algorithm, t.M}) {
		return fmt.Errorf("the nodes are not configured for agreements by %v in spite of %d liars: they are for %v",
			t.Algorithm, t.M, s.list)
	}
	return nil
}

const (
	// slotMemory is what all slots of all streams may take, in bytes, for each node of the
	// cluster: each is another that may fill them.
	slotMemory = 6 << 20
	// What a frame that is sent costs the cluster in time, and a signature that is verified.
	frameWork = 500 * time.Nanosecond
	signWork  = 60 * time.Microsecond
)

// window is how many slots of a stream may have begun in the time that one lasts if
// somebody is silent. If liars call for all that they may, the slots of all streams keep
// one processor of a node busy for two thirds of the time.
func (s share) window(t stream.Key) int {
	last := t.Rounds(s.n).Last
	frames, sources := s.n*(s.n-1)*(last+1), 1
	if t.All() {
		sources = s.n
	}
	size := 2048 + sources*512 + 2*max(t.M, 1)*t.FrameLimit(s.n)
	work := time.Duration(frames*sources) * frameWork
	switch t.Algorithm {
	case OM: // which has a place for every path
		size += sources * 48 * paths(s.n, t.M)
	case SM: // two chains that are good, and one in a round from each liar that is not
		work += time.Duration(sources*(2+t.M*(t.M+1))*(t.M+1)) * signWork
	}
	inMemory := s.n * slotMemory / s.part(t) / size
	inTime := int(time.Duration(last+2) * time.Duration(s.round) * 2 / 3 / time.Duration(s.part(t)) / work)
	return min(max(min(inMemory, inTime), 1), 4096)
}

// paths is how many there are in an information tree.
func paths(n, m int) int {
	sum := 0
	for k, of := 0, 1; k <= m; k++ {
		sum += of
		of *= max(n-1-k, 0)
	}
	return sum
}
