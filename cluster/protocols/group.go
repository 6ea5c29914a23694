package protocols

import (
	"fmt"
	"time"

	"parley"
	"parley/broadcast/atomic"
	"parley/broadcast/byzantine"
	"parley/broadcast/timestamp"
	"parley/broadcast/vector"
	"parley/membership/group"
)

// VectorLevels are the levels that one machine supports, message by message.
var VectorLevels = map[Level]vector.Level{
	Reliable: vector.Reliable, Uniform: vector.Uniform,
	FIFO: vector.FIFO, Causal: vector.Causal,
}

// DeepBatches is how many batches of a node may be in flight in a Byzantine order, if they are at least half full.
const DeepBatches = 128

// Packs is how many batches of a node may be in flight before further payloads gather in one.
const Packs = 4

// Window returns how many batches of each of n members may be in flight in an order with views. The message that
// ends a view holds all of them, and must fit into a frame of the links (16 MiB).
func Window(n, payload int) int { return min(4*Packs, max(1, 8<<20/(n*payload))) }

// Slack returns how late a node may act, with rounds of the given length.
func Slack(round time.Duration) time.Duration { return round / 5 }

// Group returns the protocol of a level, for the given views and m faulty nodes.
func Group(l Level, views group.Config, m int) (parley.Protocol, error) {
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
		return byzantine.New(Order(views, m, views.Durable)), nil
	}
	return parley.Protocol{}, fmt.Errorf("there is no level %d", uint8(l))
}

// Outlives is how many bytes of a durable group's deliveries survive a restart of a node.
const Outlives = 8 << 20

// What a member of a Byzantine group keeps for members that are behind, in slots and bytes. All nodes must keep the
// same.
const (
	keptSlots    = 1 << 16
	keptInMemory = 32 << 20
)

// Order configures a Byzantine order. A batch of the order has several batches of the group.
func Order(views group.Config, m int, durable bool) byzantine.Config {
	c := byzantine.Config{
		N: views.N, M: m, Durable: durable, Batch: 4 * views.Payload, Queue: (DeepBatches + 1) * 4 * views.Payload,
		Least: parley.Tick(20 * time.Millisecond), Most: parley.Tick(time.Second),
		Checkpoint: keptSlots, KeepBytes: keptInMemory,
	}
	if durable { // it writes all of it when it shortens its log
		c.KeepBytes = Outlives
	}
	return c
}
