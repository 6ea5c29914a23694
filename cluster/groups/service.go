package groups

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/cluster/kernel"
	"parley/cluster/protocols"
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
		if s.k.Views.Durable {
			h.Args = append(h.Args, protocols.DurableArg)
		}
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
	// ViewStatus of a group of level Byzantine has no View, because all nodes are always its Members. Its In says whether
	// this node takes part. After a restart without its state it does not, until m+1 members have admitted it.
	kernel.ViewStatus
}

// Status returns the status of all groups, given the view of each machine.
func (s *Service) Status(viewed func(machine string) kernel.ViewStatus) []Status {
	list := []Status{}
	for _, c := range s.list {
		name, g := machine(c.Name), s.groups[c.Name]
		one := Status{Name: c.Name, Level: c.Level.String(), ViewStatus: viewed(name), Position: g.kept.last()}
		if c.Level == kernel.Byzantine {
			one.In, one.Members = g.member() && s.k.Takes(true) == nil, slices.Clone(s.k.Members)
		}
		list = append(list, one)
	}
	return list
}

// sameMembers returns an error if the records of a durable group of level Byzantine are of other members, or of another
// m: its quorums would not fit together.
func (s *Service) sameMembers(c Config) error {
	book, was, _, err := s.k.Store.Open(machine(c.Name) + "/members")
	if err != nil {
		return err
	}
	now := fmt.Sprintf("m = %d of %s", s.k.M, strings.Join(s.k.Members, ", "))
	switch {
	case was == nil:
		book.Replace([]byte(now))
		return nil
	case string(was) == now:
		return nil
	case c.from != nil:
		return fmt.Errorf("its records are of %s, and not %s: start all nodes with empty data folders to begin again", was,
			now)
	}
	return fmt.Errorf("its records are of %s, and not %s: give the group another name to begin again", was, now)
}

// member reports whether this node takes part in a group of level Byzantine.
func (g *Group) member() (is bool) {
	g.process.Do(func(m parley.Machine, _ parley.Tick) {
		of, ok := m.(interface{ Member() bool })
		is = ok && of.Member()
	})
	return is
}

// orderGroup is a Byzantine group that another service uses.
type orderGroup struct{ *Group }

// Order opens a Byzantine order of all nodes.
func (s *Service) Order(channel uint32, name string, to kernel.Orderly) (kernel.Order, error) {
	g, err := s.open(Config{
		Name: name, Level: kernel.Byzantine, Keep: 1, from: to.From, live: to.Live,
		Deliver: func(d Delivery) { to.Deliver(d.Position, d.From, d.Payload) },
	}, channel)
	return orderGroup{g}, err
}

// Post submits a payload, even while the node refuses requests of clients.
func (o orderGroup) Post(payload []byte) error { return o.batcher.post(payload, kernel.Byzantine) }

// Most returns the maximum length of a payload.
func (o orderGroup) Most() int { return o.k.Views.Payload - 2*binary.MaxVarintLen64 }

// Member reports whether this node takes part in the order.
func (o orderGroup) Member() bool { return o.member() }

// Close ends all waiting calls.
func (o orderGroup) Close() { o.close(kernel.ErrClosed) }
