package groups

import (
	"encoding/binary"
	"fmt"

	"parley"
	"parley/cluster/kernel"
	"parley/trace"
)

// Service is a node's service for all its groups.
type Service struct {
	k      *kernel.Kernel
	list   []Config
	groups map[string]*Group
}

// New returns a service without open groups.
func New(k *kernel.Kernel, list []Config) *Service {
	return &Service{k: k, list: list, groups: make(map[string]*Group)}
}

// Open opens all groups.
func (s *Service) Open() error {
	for i, c := range s.list {
		g, err := s.open(c, kernel.FirstGroup+uint32(i))
		if err != nil {
			return fmt.Errorf("cluster: %w", err)
		}
		s.groups[c.Name] = g
	}
	return nil
}

// Group returns a group. If the name is not configured, all methods of the result fail with ErrNotConfigured.
func (s *Service) Group(name string) *Group {
	if g := s.groups[name]; g != nil {
		return g
	}
	return noGroup(kernel.NotConfigured("group", name, s.groups))
}

// level returns the level of the group on a channel, and false if there is none.
func (s *Service) level(channel uint32) (kernel.Level, bool) {
	if i := int64(channel) - kernel.FirstGroup; i >= 0 && i < int64(len(s.list)) {
		return s.list[i].Level, true
	}
	return 0, false
}

// AgainstLiars reports whether the group on a channel tolerates Byzantine faults.
func (s *Service) AgainstLiars(channel uint32) bool {
	l, ok := s.level(channel)
	return ok && l == kernel.Byzantine
}

// Describe records in the header of a group's trace its level and its protocol.
func (s *Service) Describe(h *trace.Header) {
	l, ok := s.level(h.Node.Channel)
	if !ok {
		return
	}
	h.Node.Level, h.Protocol = l.String(), catalogued(l)
	if h.Args = []string{h.Protocol, fmt.Sprintf("--n=%d", h.N)}; l == kernel.Byzantine {
		h.Args = append(h.Args, fmt.Sprintf("--m=%d", h.M))
	}
}

// Busy reports whether a payload waits or is in flight.
func (s *Service) Busy() bool {
	for _, g := range s.groups {
		if g.batcher.busy() {
			return true
		}
	}
	return false
}

// Close ends all waiting calls with an error.
func (s *Service) Close(why error) {
	for _, g := range s.groups {
		g.close(why)
	}
}

// Expel closes the groups from which this node is expelled: all groups, or only the groups that tolerate only
// crashes.
func (s *Service) Expel(all bool) {
	for _, g := range s.groups {
		if all || g.c.Level != kernel.Byzantine {
			g.close(kernel.ErrExpelled)
			g.process.Close()
		}
	}
}

// Status is the status of a group at this node.
type Status struct {
	Name     string `json:"name"`
	Level    string `json:"level"`
	Position uint64 `json:"position"` // of the last delivery, 0 if there was none
	kernel.ViewStatus
	*kernel.SlotStatus `json:",omitempty"`
}

// Status returns the status of all groups, given the view of each machine, and how often each machine has
// abstained.
func (s *Service) Status(viewed func(machine string) kernel.ViewStatus, abstained map[string]uint64) []Status {
	list := []Status{}
	for _, c := range s.list {
		name, g := machine(c.Name), s.groups[c.Name]
		one := Status{Name: c.Name, Level: c.Level.String(), ViewStatus: viewed(name), Position: g.kept.last()}
		if c.Level == kernel.Byzantine {
			one.SlotStatus = kernel.Slots(g.process, abstained[name])
			one.In = one.SlotStatus != nil && !one.Mute && s.k.Takes(true) == nil
		}
		list = append(list, one)
	}
	return list
}

// order is a Byzantine group that another service uses.
type order struct{ *Group }

// Order opens a Byzantine order of all nodes.
func (s *Service) Order(channel uint32, name string, deliver func(parley.ID, []byte)) (kernel.Order, error) {
	g, err := s.open(Config{
		Name: name, Level: kernel.Byzantine, Keep: 1, Deliver: func(d Delivery) { deliver(d.From, d.Payload) }, final: true,
	}, channel)
	return order{g}, err
}

// Post submits a payload, even while the node refuses requests of clients.
func (o order) Post(payload []byte) error { return o.batcher.post(payload, kernel.Byzantine) }

// Most returns the maximum length of a payload.
func (o order) Most() int { return o.k.Views.Payload - 2*binary.MaxVarintLen64 }

// Aside reports whether this node has missed something of the order, or takes no part in it.
func (o order) Aside() bool {
	s := kernel.Slots(o.process, 0)
	return s != nil && (s.Mute || s.Missed > 0)
}

// Close ends all waiting calls.
func (o order) Close() { o.close(kernel.ErrClosed) }
