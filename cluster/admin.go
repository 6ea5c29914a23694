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
