package agree

import (
	"fmt"
	"iter"
	"slices"
	"time"

	"parley"
	"parley/agreement/stream"
)

// Config is a kind of agreement: an algorithm and M, the number of faulty nodes that it tolerates.
type Config struct {
	Algorithm stream.Algorithm
	M         int
}

func (a Config) String() string { return fmt.Sprintf("%v m=%d", a.Algorithm, a.M) }

// all returns every kind of agreement among n nodes, beginning with stream.EIG and the largest m.
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

// Check returns an error if n nodes cannot have the listed kinds of agreement.
func Check(list []Config, n int) error {
	for i, a := range list {
		if err := (stream.Key{Algorithm: a.Algorithm, M: a.M}).Check(n); err != nil {
			return fmt.Errorf("agreements by %v: %w", a, err)
		}
		if slices.Contains(list[:i], a) {
			return fmt.Errorf("agreements by %v are listed twice", a)
		}
	}
	return nil
}

// Budget divides a node's resources among its streams. A faulty node can open as many slots in each stream as the
// window allows, and delay these slots until they time out. All slots of all streams together must not take more
// memory or time than the node reserves for them. The streams of the first kind get half of this reserve, and the
// streams of all other kinds share the other half. Streams without rounds have a reserve of their own, and share it
// equally: nodes of an earlier version know none of them, and must have the same windows of the others.
type Budget struct {
	n     int
	round time.Duration
	list  []Config
	major Config // the first kind in rounds
	parts int    // number of streams in rounds
	first int    // number of streams of the first kind in rounds
	views int    // number of streams without rounds
}

// NewBudget returns the budget of each of n nodes with the listed kinds of agreement, by default all.
func NewBudget(n int, round time.Duration, list []Config) Budget {
	if len(list) == 0 {
		list = all(n)
	}
	b := Budget{n: n, round: round, list: list}
	for t := range b.Streams() {
		if !t.Timed() {
			b.views++
			continue
		}
		kind := Config{t.Algorithm, t.M}
		if b.parts++; b.parts == 1 {
			b.major = kind
		}
		if kind == b.major {
			b.first++
		}
	}
	return b
}

// Streams returns the streams that a node may have.
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

// part returns the divisor of a stream's share: a stream in rounds gets 1/part of the whole.
func (b Budget) part(t stream.Key) int {
	switch others := b.parts - b.first; {
	case others == 0:
		return b.parts
	case b.major == Config{t.Algorithm, t.M}:
		return 2 * b.first
	default:
		return 2 * others
	}
}

// Allows returns an error if a stream is not configured.
func (b Budget) Allows(t stream.Key) error {
	if err := t.Check(b.n); err != nil {
		return err
	}
	if !slices.Contains(b.list, Config{t.Algorithm, t.M}) {
		return fmt.Errorf("the nodes are not configured for agreements by %v that tolerate %d faulty nodes: they are for %v",
			t.Algorithm, t.M, b.list)
	}
	return nil
}

const (
	// slotMemory limits the memory of all slots of all streams in rounds, in bytes for each node of the cluster,
	// because each node can fill it on its own.
	slotMemory = 6 << 20
	// viewMemory is the same for all streams without rounds.
	viewMemory = 3 << 20
	// The time that the cluster spends on sending a frame, and on verifying a signature.
	frameWork = 500 * time.Nanosecond
	signWork  = 60 * time.Microsecond
)

// Window returns how many slots of a stream may begin within the duration of a slot with a silent node. If
// faulty nodes open as many slots as they may, the slots of all streams keep one processor of a node busy for
// 2/3 of the time.
func (b Budget) Window(t stream.Key) int {
	if !t.Timed() {
		return b.viewWindow(t)
	}
	last := t.Rounds(b.n).Last
	frames, sources := b.n*(b.n-1)*(last+1), 1
	if t.All() {
		sources = b.n
	}
	size := 2048 + sources*512 + 2*max(t.M, 1)*t.FrameLimit(b.n)
	work := time.Duration(frames*sources) * frameWork
	switch t.Algorithm {
	case stream.OM: // which stores every path
		size += sources * 48 * paths(b.n, t.M)
	case stream.SM: // two valid chains, and in each round an invalid one from each faulty node
		work += time.Duration(sources*(2+t.M*(t.M+1))*(t.M+1)) * signWork
	}
	inMemory := b.n * slotMemory / b.part(t) / size
	inTime := int(time.Duration(last+2) * b.round * 2 / 3 / time.Duration(b.part(t)) / work)
	return min(max(min(inMemory, inTime), 1), 4096)
}

// viewWindow is Window for a stream without rounds. A faulty node can fill what others keep of it: in each slot one
// value of each kind, a claim of each node, and a report. The nodes listen in half a window more than they keep. The
// source has at most half a window in flight.
func (b Budget) viewWindow(t stream.Key) int {
	n := b.n
	size := n*(n*48+512) + max(t.M, 1)*(t.FrameLimit(n)+(8+2*n)*(t.Limit()+48))
	return min(max(b.n*viewMemory/b.views/size*2/3, 2), 4096)
}

// paths returns the number of paths in an information tree.
func paths(n, m int) int {
	sum := 0
	for k, of := 0, 1; k <= m; k++ {
		sum += of
		of *= max(n-1-k, 0)
	}
	return sum
}
