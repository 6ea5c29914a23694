package cluster

import (
	"time"

	"parley/cluster/kernel"
)

// Status is what a node knows of itself and of the others.
type Status struct {
	Cluster     string    `json:"cluster"`
	Name        string    `json:"name"`
	State       NodeState `json:"state"`
	Incarnation uint64    `json:"incarnation"` // of this life; those of later ones are larger
	Again       bool      `json:"again"`       // it has lived before
	Started     time.Time `json:"started"`
	Durable     bool      `json:"durable"`
	M           int       `json:"m"`     // how many may lie
	Round       string    `json:"round"` // its length

	// Clock is the cluster's clock at this node: see Reading.
	Synchronized bool          `json:"synchronized"`
	ClockBound   time.Duration `json:"clockBound,omitempty"` // in nanoseconds, if it is synchronized
	ClockOffset  time.Duration `json:"clockOffset"`

	Members []MemberStatus `json:"members"`
	Groups  []GroupStatus  `json:"groups"`
	Tables  []TableStatus  `json:"tables"`
	Streams []StreamStatus `json:"streams"` // of agreements
	Commit  *CommitStatus  `json:"commit,omitempty"`
	Store   *StoreStatus   `json:"store,omitempty"`
	// Refused are what machines did not accept of others, by reason.
	Refused []RefusedStatus `json:"refused"`
	// Strangers are connections of whom no member is known, by reason, and Strange the
	// messages for machines that there are not.
	Strangers map[string]uint64 `json:"strangers"`
	Strange   uint64            `json:"strange"`
}

// NodeState is what a node does.
type NodeState = kernel.State

// The states of a node.
const (
	Running  = kernel.Running
	Draining = kernel.Draining // it takes no new requests
	Leaving  = kernel.Leaving
	Left     = kernel.Left     // it is closed, too
	Expelled = kernel.Expelled // it may come back as another life
)

// MemberStatus is what is known of one member of the cluster.
type MemberStatus struct {
	Name      string `json:"name"`
	Address   string `json:"address"`
	Self      bool   `json:"self,omitempty"`
	Connected bool   `json:"connected"`
	// Expelled tells that it is not listened to any more.
	Expelled bool `json:"expelled,omitempty"`
	// In are the groups and tables in whose views it is, as this node knows.
	In          []string          `json:"in,omitempty"`
	Incarnation uint64            `json:"incarnation,omitempty"`
	Since       *time.Time        `json:"since,omitempty"` // of the connection
	Connections uint64            `json:"connections,omitempty"`
	FramesIn    uint64            `json:"framesIn"`
	FramesOut   uint64            `json:"framesOut"`
	BytesIn     uint64            `json:"bytesIn"`
	BytesOut    uint64            `json:"bytesOut"`
	FramesLost  uint64            `json:"framesLost"`
	Queued      int               `json:"queued"` // bytes
	RTT         RTTStatus         `json:"rtt"`
	Dropped     map[string]uint64 `json:"dropped,omitempty"` // connections and frames, by reason
}

// RTTStatus is how long pings took to be answered: in nanoseconds, as JSON.
type RTTStatus struct {
	Min     time.Duration `json:"min"`
	P50     time.Duration `json:"p50"`
	P999    time.Duration `json:"p999"`
	Samples int           `json:"samples"`
}

// StoreStatus is the durable memory of the node.
type StoreStatus struct {
	Records uint64 `json:"records"` // handed over in this life
	Durable uint64 `json:"durable"` // of them on the disk
	Bytes   uint64 `json:"bytes"`
	// Position is the number of the last record on the disk, over all lives.
	Position uint64 `json:"position"`
	// Free is how many bytes were free on the disk at most a second ago.
	Free uint64 `json:"free"`
	// Slowest is how long the slowest commit of this life took, in nanoseconds.
	Slowest time.Duration `json:"slowest"`
	// Low is a warning if less than 256 MiB are free, and Full says why new requests are refused if
	// less than 64 MiB are: see ErrNoRoom. At most one is set.
	Low   string `json:"low,omitempty"`
	Full  string `json:"full,omitempty"`
	Error string `json:"error,omitempty"`
}

// RefusedStatus counts what one machine did not accept of one member.
type RefusedStatus struct {
	Machine string `json:"machine"`
	From    string `json:"from"`
	Why     string `json:"why"`
	Times   uint64 `json:"times"`
}

// The errors of a node that takes nothing new.
var (
	// ErrExpelled is the error of a node that the others have expelled. It is [ErrOut].
	ErrExpelled = kernel.ErrExpelled
	// ErrDraining is the error of a request to a node that takes no new ones. It is [ErrRefused].
	ErrDraining = kernel.ErrDraining
	// ErrNoRoom is the error of a request to a node with less than 64 MiB of room on its disk: the request would
	// be written there. Reads are answered. It is [ErrRefused].
	ErrNoRoom = kernel.ErrNoRoom
)
