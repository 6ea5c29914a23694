package groups

import (
	"time"

	"parley"
	"parley/cluster/kernel"
	"parley/cluster/protocols"
	"parley/membership/group"
)

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
	return protocols.FinalGroup(c.Level, views, s.k.M, s.k.Round, c.final)
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
	return l.String()
}
