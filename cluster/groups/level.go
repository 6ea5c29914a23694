package groups

import (
	"fmt"
	"time"

	"parley"
	"parley/broadcast/atomic"
	"parley/broadcast/cuts"
	"parley/broadcast/timestamp"
	"parley/broadcast/vector"
	"parley/cluster/kernel"
	"parley/membership/group"
)

// vectorLevels are the levels that one machine supports, message by message.
var vectorLevels = map[kernel.Level]vector.Level{
	kernel.Reliable: vector.Reliable, kernel.Uniform: vector.Uniform,
	kernel.FIFO: vector.FIFO, kernel.Causal: vector.Causal,
}

// outlives is how many bytes of a durable group's deliveries survive a restart of a node.
const outlives = 8 << 20

// slowLink is the throughput, in bytes per second, with which a link lets a node join at once, however much is
// retained.
const slowLink = 8 << 20

// histories returns how long the retained deliveries of all durable groups may take on their way to a joining
// node: all of them may come from one node.
func (s *Service) histories() parley.Tick {
	bytes := 0
	for _, c := range s.list {
		if c.Level != kernel.Byzantine {
			bytes += min(c.withDefaults(len(s.list)).KeepBytes, outlives)
		}
	}
	return parley.Tick(time.Duration(bytes) * time.Second / slowLink)
}

// durable reports whether a group of this node is durable. The order of another service is, if the node has a disk.
func (s *Service) durable(c Config) bool {
	return s.k.Views.Durable || c.from != nil && s.k.Store != nil
}

// protocol returns the protocol of a group of this node.
func (s *Service) protocol(c Config) (parley.Protocol, error) {
	views := s.k.Views
	if c.from != nil {
		o := order(views, s.k.M)
		o.Durable, o.KeepBytes = s.durable(c), outlives // the disk is no part of the shared configuration
		return cuts.New(o), nil
	}
	if views.Durable {
		views.Keep, views.KeepBytes = c.Keep, min(c.KeepBytes, outlives)
		views.Admit += s.histories()
		if s.k.Admitted().Has(group.Sponsor(s.k.Self, 0, views.N)) { // otherwise another node should be asked soon
			views.First += s.histories()
		}
	}
	return Protocol(c.Level, views, s.k.M)
}

// Protocol returns the protocol of a level, for the given views and m faulty nodes.
func Protocol(l kernel.Level, views group.Config, m int) (parley.Protocol, error) {
	switch l {
	case kernel.Total:
		return timestamp.New(timestamp.Config{Config: views, Window: kernel.Window(views.N, views.Payload)}), nil
	case kernel.Reliable, kernel.Uniform, kernel.FIFO, kernel.Causal:
		return vector.New(vector.Config{
			Config: views, Level: vectorLevels[l], Window: kernel.Window(views.N, views.Payload),
			Hold: views.Detector.Period / 20,
		}), nil
	case kernel.Atomic:
		return atomic.InViews(views), nil
	case kernel.Byzantine:
		return cuts.New(order(views, m)), nil
	}
	return parley.Protocol{}, fmt.Errorf("there is no level %d", uint8(l))
}

// What a member of a Byzantine group keeps for members that are behind, in slots and bytes, and what a durable member
// also keeps for its own restart. They must be the same at all nodes.
const (
	keptSlots    = 1 << 16
	keptInMemory = 32 << 20
)

// order configures a Byzantine order. A batch of the order has several batches of the group.
func order(views group.Config, m int) cuts.Config {
	c := cuts.Config{
		N: views.N, M: m, Durable: views.Durable, Batch: 4 * views.Payload, Queue: (deepBatches + 1) * 4 * views.Payload,
		Least: parley.Tick(20 * time.Millisecond), Most: parley.Tick(time.Second),
		Checkpoint: keptSlots, KeepBytes: keptInMemory,
	}
	if c.Durable { // it writes all of it when it shortens its log
		c.KeepBytes = outlives
	}
	return c
}

// catalogued returns the catalog's name for the protocol of a level.
func catalogued(l kernel.Level) string {
	switch l {
	case kernel.Total:
		return "timestamp"
	case kernel.Atomic:
		return "atomic-views"
	case kernel.Reliable, kernel.Uniform, kernel.FIFO, kernel.Causal:
		return "vector"
	}
	return "cuts"
}
