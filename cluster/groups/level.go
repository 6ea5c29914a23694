package groups

import (
	"time"

	"parley"
	"parley/broadcast/byzantine"
	"parley/cluster/kernel"
	"parley/cluster/protocols"
	"parley/membership/group"
)

// slowLink is the throughput, in bytes per second, with which a link lets a node join at once, however much is
// retained.
const slowLink = 8 << 20

// histories returns how long the retained deliveries of all durable groups may take on their way to a joining
// node: all of them may come from one node.
func (s *Service) histories() parley.Tick {
	bytes := 0
	for _, c := range s.list {
		if c.Level != kernel.Byzantine {
			bytes += min(c.withDefaults(len(s.list)).KeepBytes, protocols.Outlives)
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
		// The disk is no part of the shared configuration, and what is kept must be the same at all nodes.
		o := protocols.Order(views, s.k.M, s.durable(c))
		o.KeepBytes = protocols.Outlives
		return byzantine.New(o), nil
	}
	if views.Durable {
		views.Keep, views.KeepBytes = c.Keep, min(c.KeepBytes, protocols.Outlives)
		views.Admit += s.histories()
		if s.k.Admitted().Has(group.Sponsor(s.k.Self, 0, views.N)) { // otherwise another node should be asked soon
			views.First += s.histories()
		}
	}
	return protocols.Group(c.Level, views, s.k.M)
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
	return "byzantine"
}
