package groups

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
	"parley/cluster/kernel"
	"parley/lockstep"
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
func (s *Service) histories() parley.Tick {
	bytes := 0
	for _, c := range s.list {
		if c.Level != Byzantine {
			bytes += min(c.withDefaults(len(s.list)).KeepBytes, outlives)
		}
	}
	return parley.Tick(time.Duration(bytes) * time.Second / slowLink)
}

// protocol is that of a group of this node.
func (s *Service) protocol(c Config) (parley.Protocol, error) {
	views := s.k.Views
	if views.Durable {
		views.Keep, views.KeepBytes = c.Keep, min(c.KeepBytes, outlives)
		views.Admit += s.histories()
		if s.k.Admitted().Has(group.Sponsor(s.k.Self, 0, views.N)) { // else another one is to be asked soon
			views.First += s.histories()
		}
	}
	return protocol(c.Level, views, s.k.M, s.k.Round, c.final)
}

// Protocol returns the protocol behind a level, among nodes that have such views, and of which m may lie.
func Protocol(l Level, views group.Config, m int, round time.Duration) (parley.Protocol, error) {
	return protocol(l, views, m, round, false)
}

func protocol(l Level, views group.Config, m int, round time.Duration, final bool) (parley.Protocol, error) {
	switch l {
	case Total:
		return timestamp.New(timestamp.Config{Config: views, Window: kernel.Window(views.N, views.Payload)}), nil
	case Reliable, Uniform, FIFO, Causal:
		return vector.New(vector.Config{
			Config: views, Level: vectorLevels[l], Window: kernel.Window(views.N, views.Payload),
			Hold: views.Detector.Period / 20,
		}), nil
	case Atomic:
		return atomic.InViews(views), nil
	case Byzantine:
		when := lockstep.Schedule{
			Delta: parley.Tick(round), Slack: parley.Tick(kernel.Slack(round)), Early: true, OnCall: true,
		}
		return byzantine.New(byzantine.Config{
			N: views.N, M: m, Window: slots(m), Batch: 2 * views.Payload, Queue: (deepPacks + 1) * views.Payload,
			Flight: flight, Tries: 1 << 30, Final: final,
		}, when), nil
	}
	return parley.Protocol{}, fmt.Errorf("there is no level %d", uint8(l))
}

// slots is how many slots of a Byzantine order may have begun in the time that one lasts
// if somebody is silent. What liars may send in their later rounds is kept, and takes time to
// judge: milliseconds a slot with 3 of 10 nodes, a tenth of a second with 4 of 13.
func slots(m int) int { return [...]int{4096, 4096, 1024, 128, 4}[min(m, 4)] }

// catalogued is what the catalog calls the protocol of a level.
func catalogued(l Level) string {
	switch l {
	case Total:
		return "timestamp"
	case Atomic:
		return "atomic-views"
	case Reliable, Uniform, FIFO, Causal:
		return "vector"
	}
	return l.String()
}
