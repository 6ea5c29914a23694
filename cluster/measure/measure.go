// Package measure holds what a node has measured: the delays of messages, and how late the node and its peers act.
// From these measurements it recommends the length of a round.
package measure

import (
	"time"

	"parley/cluster/clocks"
	"parley/cluster/link"
)

// Measurement is what a node has measured about itself and its peers. Use it to choose the length of a round.
type Measurement struct {
	Nodes int           `json:"nodes"`
	M     int           `json:"m"`
	Round time.Duration `json:"round"` // as configured
	// Peers are the other nodes, in the order of members.
	Peers []PeerMeasurement `json:"peers"`
	// Wake is how late this process was scheduled, over the last 4096 measurements (about 41 s).
	Wake clocks.WakeLatency `json:"wake"`
	// Suspended is how long this computer was suspended since the node started.
	Suspended time.Duration `json:"suspended"`
	// Bound is the maximum difference between clocks. Synchronized says whether this node's clock is synchronized.
	Bound        time.Duration `json:"bound"`
	Synchronized bool          `json:"synchronized"`
	// Drift is how much faster this node's clock runs than the clocks of the others, in parts per million. It is 0 if
	// this is not known.
	Drift float64 `json:"drift"`
}

// PeerMeasurement is what the node has measured about one peer.
type PeerMeasurement struct {
	Name      string   `json:"name"`
	Connected bool     `json:"connected"`
	RTT       link.RTT `json:"roundTrip"`
	// Skew is how far the peer's clock was ahead when it was last read. Error is the maximum error of Skew. Read is
	// false if the clock could not be read.
	Read  bool          `json:"read"`
	Skew  time.Duration `json:"skew"`
	Error time.Duration `json:"error"`
}
