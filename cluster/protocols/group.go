package protocols

import (
	"fmt"
	"time"

	"parley"
	"parley/broadcast/atomic"
	"parley/broadcast/byzantine"
	"parley/broadcast/timestamp"
	"parley/broadcast/vector"
	"parley/lockstep"
	"parley/membership/group"
)

// VectorLevels are the levels that one machine supports, message by message.
var VectorLevels = map[Level]vector.Level{
	Reliable: vector.Reliable, Uniform: vector.Uniform,
	FIFO: vector.FIFO, Causal: vector.Causal,
}

// flight is how many bytes of a Byzantine order one node begins at most in the time that a slot may last; the
// others keep half of that. With rounds of 100 ms it is 50 MB/s.
const flight = 16 << 20

// DeepBatches is how many batches may be in flight in a Byzantine order, if they are at least half full: with a
// silent node each takes as long as all the rounds do. It matches the order's own window.
const DeepBatches = 128

// Packs is how many batches of a node may be in flight before further payloads gather in one.
const Packs = 4

// Window returns how many batches of each of n members may be in flight in an order with views. The message that
// ends a view holds all of them, and must fit into a frame of the links (16 MiB).
func Window(n, payload int) int { return min(4*Packs, max(1, 8<<20/(n*payload))) }

// Slack returns how late a node may act, with rounds of the given length.
func Slack(round time.Duration) time.Duration { return round / 5 }

// Group returns the protocol of a level, for the given views and m faulty nodes.
func Group(l Level, views group.Config, m int, round time.Duration) (parley.Protocol, error) {
	return FinalGroup(l, views, m, round, false)
}

// FinalGroup is Group for a Byzantine order that is final if final is set: see [byzantine.Config].
func FinalGroup(l Level, views group.Config, m int, round time.Duration, final bool) (parley.Protocol, error) {
	switch l {
	case Total:
		return timestamp.New(timestamp.Config{Config: views, Window: Window(views.N, views.Payload)}), nil
	case Reliable, Uniform, FIFO, Causal:
		return vector.New(vector.Config{
			Config: views, Level: VectorLevels[l], Window: Window(views.N, views.Payload),
			Hold: views.Detector.Period / 20,
		}), nil
	case Atomic:
		return atomic.InViews(views), nil
	case Byzantine:
		when := lockstep.Schedule{
			Delta: parley.Tick(round), Slack: parley.Tick(Slack(round)), Early: true, OnDemand: true,
		}
		return byzantine.New(byzantine.Config{
			N: views.N, M: m, Window: slots(m), Batch: 2 * views.Payload, Queue: (DeepBatches + 1) * views.Payload,
			Flight: flight, Tries: 1 << 30, Final: final,
		}, when), nil
	}
	return parley.Protocol{}, fmt.Errorf("there is no level %d", uint8(l))
}

// slots returns how many slots of a Byzantine order may begin in the time that one lasts if a node is silent.
// What faulty nodes send in their later rounds is kept and takes time to judge: milliseconds for a slot with m =
// 3 of 10 nodes, 0.1 s with m = 4 of 13.
func slots(m int) int { return [...]int{4096, 4096, 1024, 128, 4}[min(m, 4)] }
