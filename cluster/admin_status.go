package cluster

import (
	"cmp"
	"slices"

	"parley"
	"parley/cluster/link"
	"parley/cluster/store"
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
		v, members := n.viewStatus(machine)
		for id := range members.All() {
			in[id] = append(in[id], machine)
		}
		return v
	}
	s.Groups = n.groups.Status(viewed, abstained)
	s.Tables = n.tables.Status(viewed)
	s.Streams = n.agree.Status(abstained)
	s.Commit = n.commits.Status()
	s.Members, s.Strangers = n.memberStatus(in)
	s.Store = n.storeStatus()
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

// viewStatus is the last view of a machine; none if it has none.
func (n *Node) viewStatus(machine string) (s ViewStatus, members parley.Set) {
	n.admin.mu.Lock()
	defer n.admin.mu.Unlock()
	v := n.admin.views[machine]
	if v == nil {
		return s, members
	}
	s = ViewStatus{In: v.in, View: v.number, Members: n.k.Names(v.members)}
	if v.suspected != (parley.Set{}) {
		s.Suspected = n.k.Names(v.suspected)
	}
	return s, v.members
}

// memberStatus is that of all members.
func (n *Node) memberStatus(in [][]string) (list []MemberStatus, strangers map[string]uint64) {
	stats := n.mesh.Stats()
	byName := func(of map[link.Reason]uint64) map[string]uint64 {
		out := make(map[string]uint64)
		for why, times := range of {
			out[why.String()] = times
		}
		return out
	}
	for id, m := range n.c.Members {
		s := MemberStatus{Name: m.Name, Address: m.Address, In: in[id]}
		if parley.ID(id) == n.k.Self {
			s.Self, s.Connected, s.Incarnation = true, true, n.admin.life
		}
		list = append(list, s)
	}
	for _, p := range stats.Peers {
		s := &list[p.ID]
		s.Connected, s.Incarnation, s.Connections = p.Connected, p.Incarnation, p.Connections
		s.FramesIn, s.FramesOut, s.BytesIn, s.BytesOut = p.FramesIn, p.FramesOut, p.BytesIn, p.BytesOut
		s.FramesLost, s.Queued, s.Dropped = p.FramesLost, p.Queued, byName(p.Refused)
		s.RTT = RTTStatus{p.RTT.Min, p.RTT.P50, p.RTT.P999, p.RTT.Samples}
		if p.Connected {
			since := p.Since
			s.Since = &since
		}
		c := &n.admin.closed[p.ID]
		s.Expelled = c.what.Load() != 0
		for why, times := range map[string]uint64{
			"expelled": c.dropped.Load(), "no machine": n.k.Host.StrangeOf(p.ID), "no message": n.k.Host.Malformed(p.ID),
		} {
			if times > 0 {
				s.Dropped[why] = times
			}
		}
	}
	return list, byName(stats.Refused)
}

// storeStatus returns how the durable memory is, nil without one.
func (n *Node) storeStatus() *StoreStatus {
	if n.k.Store == nil {
		return nil
	}
	st := n.k.Store.Stats()
	s := &StoreStatus{
		Records: st.Records, Durable: st.Durable, Bytes: st.Bytes, Position: st.Position,
		Free: st.Free, Slowest: st.Slowest,
	}
	if st.Err != nil {
		s.Error = st.Err.Error()
	}
	if err := n.k.Store.Room(n.k.Store.Least()); err != nil {
		s.Full = err.Error()
	} else if err := n.k.Store.Room(store.RoomWarn); err != nil {
		s.Low = err.Error()
	}
	return s
}
