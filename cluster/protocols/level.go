package protocols

import (
	"fmt"
	"slices"
	"strings"
)

// Level is what a group promises, and under which faults.
//
// All levels except Byzantine tolerate crashes, but no Byzantine faults. They work in agreed views, which contain a
// majority of the nodes. A member that crashes, or whose messages do not arrive, is excluded. Then all members that
// stay deliver a payload of this member that is in flight, or none of them delivers it. A restarted node is a new
// member, identified by its incarnation. It delivers what is broadcast from then on. If the group is durable, the
// others also send it the payloads that it missed, as far as they are retained. If the group is not durable, it does
// not deliver the payloads that it missed.
type Level uint8

// The levels.
const (
	// Total is uniform total order: if any member delivers a payload, even a member that then crashes, all members
	// that stay deliver it at the same position.
	Total Level = iota
	// Reliable has no order: if a member that stays delivers a payload, all members that stay deliver it.
	Reliable
	// Uniform promises what Reliable promises, even for a payload that only a crashed member has delivered.
	Uniform
	// FIFO promises what Reliable promises, and delivers each sender's payloads in the order of their broadcasts.
	FIFO
	// Causal promises what FIFO promises, and delivers each payload only after all payloads that its sender had
	// delivered before it broadcast this one.
	Causal
	// Atomic is uniform total order by the two-phase protocol of the lecture. It needs more messages than Total for
	// the same promise.
	Atomic
	// Byzantine is total order at all correct members, while at most M are faulty, whatever the timing. A member that
	// was paused or disconnected delivers what it missed, at the same positions as all others. If the others no longer
	// keep it (8 MiB, in memory 32 MiB), it continues after the gap, and an earlier position is a GoneError. In a
	// durable group, any number of members may restart, and nothing is lost. In a group in memory, a member that has
	// restarted counts as faulty until m+1 others have admitted it. If more than M members are faulty or have
	// restarted at the same time, nothing more is delivered until all members start with empty folders.
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
