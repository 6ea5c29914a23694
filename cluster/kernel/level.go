package kernel

import (
	"fmt"
	"slices"
	"strings"
)

// Level is what a group promises, and against whom.
//
// All levels but Byzantine are for members that may crash and do not lie, and work in
// agreed views of a majority: who crashes, or cannot be heard, is excluded, and what it
// had under way is delivered by all who stay or by none. A node that comes back is a new
// member in the life that its incarnation numbers: it delivers what is broadcast from then
// on, and is never taken for who it was. What was broadcast while it was away it gets from the
// others if the group is durable, as far as it is kept, and otherwise does not deliver.
type Level uint8

// The levels.
const (
	// Total is one order at all members, uniform: what any of them has delivered, those
	// that crash too, all that stay deliver in the same place.
	Total Level = iota
	// Reliable has no order: what one member that stays delivers all that stay do.
	Reliable
	// Uniform is Reliable, of what members deliver that crash then too.
	Uniform
	// FIFO is Reliable, and each sender's payloads come in the order in which it broadcast.
	FIFO
	// Causal is FIFO, and nothing is delivered before what its sender had delivered when it
	// broadcast.
	Causal
	// Atomic is one order at all members, uniform, by the lecture's two phases: more
	// messages than Total for the same promise.
	Atomic
	// Byzantine is one order at all correct members, while at most M may do anything. One
	// that was closed, held up or cut off counts among these until it is back: it delivers
	// what comes then, at the positions that it has everywhere, and not what it missed.
	Byzantine
)

var levelNames = [...]string{"total", "reliable", "uniform", "fifo", "causal", "atomic", "byzantine"}

// Known tells whether there is such a level.
func (l Level) Known() bool { return int(l) < len(levelNames) }

func (l Level) String() string {
	if l.Known() {
		return levelNames[l]
	}
	return fmt.Sprintf("Level(%d)", uint8(l))
}

// ParseLevel reads what String writes.
func ParseLevel(text string) (Level, error) {
	if i := slices.Index(levelNames[:], text); i >= 0 {
		return Level(i), nil
	}
	return 0, fmt.Errorf("%q: allowed are %s", text, strings.Join(levelNames[:], ", "))
}

// Carries tells whether a group of this level takes payloads of another one.
func (l Level) Carries(other Level) bool {
	mixes := func(l Level) bool { return l >= Reliable && l <= Causal }
	return l == other || mixes(l) && mixes(other)
}
