package agree

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"parley"
	"parley/agreement/stream"
)

// Config is a kind of agreement: by an algorithm, in spite of M liars.
type Config struct {
	Algorithm stream.Algorithm
	M         int
}

func (a Config) String() string { return fmt.Sprintf("%v m=%d", a.Algorithm, a.M) }

// all are the agreements that there are among n nodes, stream.EIG in spite of the most liars first.
func all(n int) []Config {
	first := Config{stream.EIG, stream.EIG.Most(n)}
	list := []Config{first}
	for a := range stream.Algorithms {
		most := a.Most(n)
		for m := min(1, most); m <= most; m++ {
			if one := (Config{a, m}); one != first {
				list = append(list, one)
			}
		}
	}
	return list
}

// Check tells what is wrong with the agreements that n nodes are to have.
func Check(list []Config, n int) error {
	for i, a := range list {
		if err := (stream.Key{Algorithm: a.Algorithm, M: a.M}).Check(n); err != nil {
			return fmt.Errorf("agreements by %v: %w", a, err)
		}
		if slices.Contains(list[:i], a) {
			return fmt.Errorf("agreements by %v are named twice", a)
		}
	}
	return nil
}

// Budget divides a node among its streams. A liar can have slots begin in all of them, as many
// as the window lets, and hold them up until their time is over: all slots of all streams
// together must not take more memory than the node has for them, nor more time. The streams
// of the first agreement have half of it, and those of all others the other half.
type Budget struct {
	n     int
	round time.Duration
	list  []Config
	parts int // streams
	first int // those of them of the first agreement
}

// NewBudget returns the budget of each of n nodes that have a list of agreements, by default all that there are.
func NewBudget(n int, round time.Duration, list []Config) Budget {
	if len(list) == 0 {
		list = all(n)
	}
	b := Budget{n: n, round: round, list: list}
	for t := range b.Streams() {
		if b.parts++; list[0] == (Config{t.Algorithm, t.M}) {
			b.first++
		}
	}
	return b
}

// Streams returns the streams that the node may have.
func (b Budget) Streams() iter.Seq[stream.Key] {
	return func(yield func(stream.Key) bool) {
		for _, a := range b.list {
			for _, source := range append(slices.Collect(parley.Everyone(b.n).All()), stream.Everyone) {
				t := stream.Key{Algorithm: a.Algorithm, M: a.M, Source: source}
				if t.Check(b.n) == nil && !yield(t) {
					return
				}
			}
		}
	}
}

// part is which part of all that there is a stream has: one of so many.
func (b Budget) part(t stream.Key) int {
	switch others := b.parts - b.first; {
	case others == 0:
		return b.parts
	case b.list[0] == Config{t.Algorithm, t.M}:
		return 2 * b.first
	default:
		return 2 * others
	}
}

// Allows tells why a stream is none of the node's.
func (b Budget) Allows(t stream.Key) error {
	if err := t.Check(b.n); err != nil {
		return err
	}
	if !slices.Contains(b.list, Config{t.Algorithm, t.M}) {
		return fmt.Errorf("the nodes are not configured for agreements by %v in spite of %d liars: they are for %v",
			t.Algorithm, t.M, b.list)
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

// Window is how many slots of a stream may have begun in the time that one lasts if
// somebody is silent. If liars call for all that they may, the slots of all streams keep
// one processor of a node busy for two thirds of the time.
func (b Budget) Window(t stream.Key) int {
	last := t.Rounds(b.n).Last
	frames, sources := b.n*(b.n-1)*(last+1), 1
	if t.All() {
		sources = b.n
	}
	size := 2048 + sources*512 + 2*max(t.M, 1)*t.FrameLimit(b.n)
	work := time.Duration(frames*sources) * frameWork
	switch t.Algorithm {
	case stream.OM: // which has a place for every path
		size += sources * 48 * paths(b.n, t.M)
	case stream.SM: // two chains that are good, and one in a round from each liar that is not
		work += time.Duration(sources*(2+t.M*(t.M+1))*(t.M+1)) * signWork
	}
	inMemory := b.n * slotMemory / b.part(t) / size
	inTime := int(time.Duration(last+2) * b.round * 2 / 3 / time.Duration(b.part(t)) / work)
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
