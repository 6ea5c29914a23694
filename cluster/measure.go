package cluster

import (
	"time"

	"parley"
	"parley/cluster/host"
	"parley/cluster/link"
)

// Measurement is what a node has measured of the others and of itself: what the length of a
// round has to stand on.
type Measurement struct {
	Nodes int           `json:"nodes"`
	M     int           `json:"m"`
	Round time.Duration `json:"round"` // as it is configured
	// Peers are the other nodes, in the order of members.
	Peers []PeerMeasurement `json:"peers"`
	// Wake is how late this process wakes, over the last minute or so.
	Wake Lateness `json:"wake"`
	// Suspended is for how long this machine was suspended since the node began.
	Suspended time.Duration `json:"suspended"`
	// Bound is how far apart clocks may be, and Synchronized whether this node's is in.
	Bound        time.Duration `json:"bound"`
	Synchronized bool          `json:"synchronized"`
	// Drift is how much faster than the others' this node's clock runs, in parts in a
	// million; 0 as long as that is not known.
	Drift float64 `json:"drift"`
}

// PeerMeasurement is what was measured of another node.
type PeerMeasurement struct {
	Name      string   `json:"name"`
	Connected bool     `json:"connected"`
	RTT       link.RTT `json:"roundTrip"`
	// Skew is how far its clock was ahead when it was last read, and Error how wrong that may
	// be; Read is false where it could not be.
	Read  bool          `json:"read"`
	Skew  time.Duration `json:"skew"`
	Error time.Duration `json:"error"`
}

// rate is by how much this node's clock gains on the others, in parts in a million; 0 as long
// as that is not known.
func (n *Node) rate() (rate float64) {
	if k := &n.clock; k.kept() {
		k.process.Do(func(_ parley.Machine, now parley.Tick) { rate = k.look(now).Rate })
	}
	return rate
}

// Measure tells what the node has measured.
func (n *Node) Measure() Measurement {
	k := &n.clock
	r := n.Clock()
	m := Measurement{
		Nodes: len(n.c.Members), M: n.c.M, Round: n.c.Round, Wake: k.watch.lateness(),
		Bound: r.Bound, Synchronized: r.Synchronized,
	}
	if s, ok := n.c.Clock.(*host.System); ok {
		m.Suspended = s.Asleep()
	}
	for _, p := range n.mesh.Stats().Peers {
		m.Peers = append(m.Peers, PeerMeasurement{Name: n.k.Name(p.ID), Connected: p.Connected, RTT: p.RTT})
	}
	if k.process == nil {
		return m
	}
	k.process.Do(func(_ parley.Machine, now parley.Tick) {
		v, at := k.look(now), 0
		for id := range parley.ID(len(n.c.Members)) {
			if id == n.k.Self {
				continue
			}
			if p := &m.Peers[at]; v.Read.Has(id) {
				p.Read, p.Skew, p.Error = true, time.Duration(v.Ahead[id]), time.Duration(k.plan.Error)
			}
			at++
		}
		m.Drift = v.Rate
	})
	return m
}
