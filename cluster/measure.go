package cluster

import (
	"time"

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
