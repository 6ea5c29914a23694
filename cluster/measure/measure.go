// Package measure holds what a node has measured of the others and of itself, and says how long rounds should be.
package measure

import (
	"time"

	"parley/cluster/clocks"
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
	Wake clocks.WakeLatency `json:"wake"`
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
