package cluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"parley"
	"parley/broadcast/atomic"
	"parley/broadcast/byzantine"
	"parley/broadcast/timestamp"
	"parley/broadcast/vector"
	"parley/membership/group"
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

var levelNames = []string{"total", "reliable", "uniform", "fifo", "causal", "atomic", "byzantine"}

func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("Level(%d)", uint8(l))
}

// ParseLevel reads what String writes.
func ParseLevel(text string) (Level, error) {
	if i := slices.Index(levelNames, text); i >= 0 {
		return Level(i), nil
	}
	return 0, fmt.Errorf("%q: allowed are %s", text, strings.Join(levelNames, ", "))
}

// vectorLevels are the levels of one machine, any of which a message may have.
var vectorLevels = map[Level]vector.Level{
	Reliable: vector.Reliable, Uniform: vector.Uniform, FIFO: vector.FIFO, Causal: vector.Causal,
}

// Carries tells whether a group of this level takes payloads of another one.
func (l Level) Carries(other Level) bool {
	_, mine := vectorLevels[l]
	_, others := vectorLevels[other]
	return l == other || mine && others
}

// flight is how many bytes of a Byzantine order one node begins at most in the time that a
// slot may last, and half of what others keep of it. With rounds of 100 ms it is 50 MB a
// second.
const flight = 16 << 20

// outlives is how many bytes of what a durable group has delivered outlive a node's end.
const outlives = 8 << 20

// slowLink is how many bytes a second a link carries at least with which a node joins at once, however
// much is kept.
const slowLink = 8 << 20

// histories is how long what all durable groups keep may take on its way to a node that joins: all of
// them may come from one node.
func (n *Node) histories() parley.Tick {
	bytes := 0
	for _, c := range n.c.Groups {
		if c.Level != Byzantine {
			bytes += min(c.withDefaults(len(n.c.Groups)).KeepBytes, outlives)
		}
	}
	return parley.Tick(time.Duration(bytes) * time.Second / slowLink)
}

// leveled is the protocol behind a level.
func (n *Node) leveled(c GroupConfig) (parley.Protocol, error) {
	views, l := n.c.views(), c.Level
	if views.Durable {
		views.Keep, views.KeepBytes = c.Keep, min(c.KeepBytes, outlives)
		views.Admit += n.histories()
		if up, _ := n.others(); up.Has(group.Sponsor(n.k.Self, 0, views.N)) { // else another one is to be asked soon
			views.First += n.histories()
		}
	}
	switch l {
	case Total:
		return timestamp.New(timestamp.Config{Config: views, Window: window(views.N, views.Payload)}), nil
	case Reliable, Uniform, FIFO, Causal:
		return vector.New(vector.Config{
			Config: views, Level: vectorLevels[l], Window: window(views.N, views.Payload),
			Hold: views.Detector.Period / 20,
		}), nil
	case Atomic:
		return atomic.InViews(views), nil
	case Byzantine:
		return byzantine.New(byzantine.Config{
			N: views.N, M: n.c.M, Window: n.c.slots(), Batch: 2 * views.Payload, Queue: (deepPacks + 1) * views.Payload,
			Flight: flight, Tries: 1 << 30, Final: c.final,
		}, n.c.onCall()), nil
	}
	return parley.Protocol{}, fmt.Errorf("there is no level %d", uint8(l))
}
