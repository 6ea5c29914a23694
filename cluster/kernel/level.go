package kernel

import (
	"fmt"
	"slices"
	"strings"
)

// Level is what a group promises, and under which faults.
//
// All levels but Byzantine tolerate crashes, but no Byzantine faults, and work in agreed views of a majority. A
// member that crashes, or cannot be heard, is excluded, and its payloads in flight are delivered by all members
// that stay or by none. A restarted node is a new member, identified by its incarnation: it delivers what is
// broadcast from then on. If the group is durable, it also gets from the others the payloads of the time while
// it was away, as far as they are retained; otherwise it does not deliver them.
type Level uint8

// The levels.
const (
	// Total is uniform total order: what any member has delivered, even one that crashes, all members that stay
	// deliver in the same place.
	Total Level = iota
	// Reliable has no order: what one member that stays delivers, all that stay deliver.
	Reliable
	// Uniform is Reliable, and includes deliveries of members that crash afterwards.
	Uniform
	// FIFO is Reliable, and delivers each sender's payloads in the order of their broadcasts.
	FIFO
	// Causal is FIFO, and delivers each payload only after all that its sender had delivered before it broadcast
	// the payload.
	Causal
	// Atomic is uniform total order by the lecture's two phases. It needs more messages than Total for the same
	// promise.
	Atomic
	// Byzantine is total order at all correct members, while at most M are faulty. A member that was closed,
	// paused, or disconnected counts as faulty until it has rejoined: it delivers what comes then, at the same
	// positions as all others, and not what it missed.
	Byzantine
)

var levelNames = [...]string{"total", "reliable", "uniform", "fifo", "causal", "atomic", "byzantine"}

// Known reports whether the level exists.
func (l Level) Known() bool { return int(l) < len(levelNames) }

func (l Level) String() string {
	if l.Known() {
		return levelNames[l]
	}
	return fmt.Sprintf("Level(%d)", uint8(l))
}

// ParseLevel parses the result of String.
func ParseLevel(text string) (Level, error) {
	if i := slices.Index(levelNames[:], text); i >= 0 {
		return Level(i), nil
	}
	return 0, fmt.Errorf("%q: allowed are %s", text, strings.Join(levelNames[:], ", "))
}

// Carries reports whether a group of this level accepts payloads of another level.
func (l Level) Carries(other Level) bool {
	mixes := func(l Level) bool { return l >= Reliable && l <= Causal }
	return l == other || mixes(l) && mixes(other)
}
