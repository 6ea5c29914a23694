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

// flight is how many bytes of a Byzantine order one node begins at most in the time that a slot may last; the
// others keep half of that. With rounds of 100 ms it is 50 MB/s.
const flight = 16 << 20

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

// protocol returns the protocol of a group of this node.
func (s *Service) protocol(c Config) (parley.Protocol, error) {
	views := s.k.Views
	if views.Durable {
		views.Keep, views.KeepBytes = c.Keep, min(c.KeepBytes, outlives)
		views.Admit += s.histories()
		if s.k.Admitted().Has(group.Sponsor(s.k.Self, 0, views.N)) { // otherwise another node should be asked soon
			views.First += s.histories()
		}
	}
	return protocol(c.Level, views, s.k.M, s.k.Round, c.final)
}

// Protocol returns the protocol of a level, for the given views and m faulty nodes.
func Protocol(l kernel.Level, views group.Config, m int, round time.Duration) (parley.Protocol, error) {
	return protocol(l, views, m, round, false)
}

func protocol(l kernel.Level, views group.Config, m int, round time.Duration, final bool) (parley.Protocol, error) {
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
		return cuts.New(cuts.Config{
			N: views.N, M: m, Batch: 4 * views.Payload, Queue: (deepBatches + 1) * 4 * views.Payload,
			Least: parley.Tick(20 * time.Millisecond), Most: parley.Tick(time.Second),
		}), nil
	}
	return parley.Protocol{}, fmt.Errorf("there is no level %d", uint8(l))
}

// slots returns how many slots of a Byzantine order may begin in the time that one lasts if a node is silent.
// What faulty nodes send in their later rounds is kept and takes time to judge: milliseconds for a slot with m =
// 3 of 10 nodes, 0.1 s with m = 4 of 13.
func slots(m int) int { return [...]int{4096, 4096, 1024, 128, 4}[min(m, 4)] }

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
	return l.String()
}
