package cluster

import (
	"cmp"
	"slices"
	"time"

	"parley"
	"parley/cluster/host"
)

// Status tells how the node and all it knows of stand. It is made anew for each call, and
// what is in it may be some steps apart.
func (n *Node) Status() Status {
	clock := n.Clock()
	s := Status{
		Cluster: n.c.Trust.Cluster(), Name: n.c.Name, State: n.k.State(), Incarnation: n.admin.life,
		Again: n.k.Again || n.c.Rejoin, Started: n.admin.started, Durable: n.c.Durable, M: n.c.M, Round: n.c.Round.String(),
		Synchronized: clock.Synchronized, ClockOffset: clock.Offset,
		Strange: n.k.Host.Strange(),
	}
	if clock.Synchronized {
		s.ClockBound = clock.Bound
	}
	var abstained map[string]uint64
	s.Refused, abstained = n.refusedStatus()
	in := make([][]string, len(n.c.Members))
	viewed := func(machine string) ViewStatus {
		v, members := n.members.Status(machine)
		for id := range members.All() {
			in[id] = append(in[id], machine)
		}
		return v
	}
	s.Groups = n.groups.Status(viewed, abstained)
	s.Tables = n.tables.Status(viewed)
	s.Streams = n.agree.Status(abstained)
	s.Commit = n.commits.Status()
	s.Members, s.Strangers = n.mesh.Status(in, n.members.Expelled)
	s.Store = n.k.StoreStatus()
	return s
}

// refusedStatus counts what was refused, and by machine how often this node has abstained.
func (n *Node) refusedStatus() (list []RefusedStatus, abstained map[string]uint64) {
	list, abstained = []RefusedStatus{}, make(map[string]uint64)
	n.k.Host.Refused(func(machine string, from parley.ID, why string, times uint64) {
		if from == n.k.Self && (why == abstains || why == cutOff) {
			abstained[machine] += times
		}
		list = append(list, RefusedStatus{machine, n.c.Members[from].Name, why, times})
	})
	slices.SortFunc(list, func(a, b RefusedStatus) int {
		return cmp.Or(cmp.Compare(a.Machine, b.Machine), cmp.Compare(a.From, b.From), cmp.Compare(a.Why, b.Why))
	})
	return list, abstained
}

// abstains is the reason that rounds give for it, and cutOff that who hears too few gives.
const (
	abstains = "woke too late: abstains"
	cutOff   = "heard too few: abstains"
)

// Measure tells what the node has measured.
func (n *Node) Measure() Measurement {
	r := n.Clock()
	m := Measurement{
		Nodes: len(n.c.Members), M: n.c.M, Round: n.c.Round, Wake: n.clock.Lateness(),
		Bound: r.Bound, Synchronized: r.Synchronized,
	}
	if s, ok := n.c.Clock.(*host.System); ok {
		m.Suspended = s.Asleep()
	}
	clocks := n.clock.Look()
	m.Drift = clocks.Rate
	for _, p := range n.mesh.Stats().Peers {
		one := PeerMeasurement{Name: n.k.Name(p.ID), Connected: p.Connected, RTT: p.RTT, Read: clocks.Read.Has(p.ID)}
		if one.Read {
			one.Skew, one.Error = time.Duration(clocks.Ahead[p.ID]), n.clock.Error()
		}
		m.Peers = append(m.Peers, one)
	}
	return m
}
