// Package kernel says what a service on a node knows of that node: who it is and who the others are, the host that
// runs the service's machine, what is durable, and whether anything new is taken now. A service knows nothing of
// the other services, so each can be read and tested without them.
package kernel

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"parley"
	"parley/cluster/host"
	"parley/cluster/link"
	"parley/cluster/store"
	"parley/faulty"
	"parley/internal/lists"
	"parley/membership/group"
)

// Kernel is the part of a node that its services share. All fields are set before the first service is opened, and
// stay as they are.
type Kernel struct {
	Standing
	Work    Work
	Cluster string // its name
	Life    uint64 // the number of this life of the node
	Self    parley.ID
	Members []string // their names, by ID
	M       int      // how many members may lie
	Round   time.Duration
	Clock   host.Clock
	Signs   bool             // it has a key to sign with
	Lies    *faulty.Behavior // how this node lies, nil if it does not: for laboratories
	Log     *slog.Logger
	Host    *host.Host
	Store   *store.Store // nil if nothing outlives the process
	Again   bool         // the node has lived before
	Rejoin  bool         // the node has lost what it had, and joins as a new one
	Intact  bool         // the node has never lost what it had
	Views   group.Config // of a group of all nodes
	Compact int          // the number of records after which a state replaces its log
	// Up returns the members that this node is connected to.
	Up func() parley.Set
	// Admitted returns the members that have let this node in.
	Admitted func() parley.Set
	// Watched opens a machine with views, of which the node keeps account; one that suspects members is told of links
	// that break.
	Watched func(o host.Options, suspects bool) (*host.Process, error)
	// Peers returns what is known of the links to all others, and Drift by how many parts in a million this node's clock
	// gains on theirs, 0 as long as that is not known.
	Peers func() []link.PeerStats
	Drift func() float64
	// Ended is closed when the node is, or can not go on.
	Ended <-chan struct{}
	// Order opens an order of all nodes on a channel. deliver is called within a step of the order.
	Order func(channel uint32, name string, deliver func(from parley.ID, payload []byte)) (Order, error)
}

// Order carries payloads to all nodes, in the same order at all correct ones, while at most M members lie.
type Order interface {
	// Post returns when the payload is on its way, and waits while too much is. After an error it never comes.
	Post(payload []byte) error
	// Most is the greatest length of a payload, in bytes.
	Most() int
	// Aside tells whether this node has missed something of the order, or takes no part in it.
	Aside() bool
	// Close ends what waits.
	Close()
}

// Name returns the name of a member.
func (k *Kernel) Name(id parley.ID) string { return k.Members[id] }

// Other returns the ID of another member, for an order of the operator that is the verb.
func (k *Kernel) Other(name, verb string) (parley.ID, error) {
	i := slices.Index(k.Members, name)
	switch {
	case i < 0:
		return 0, fmt.Errorf("%w: %q is none of the %d members", ErrRefused, name, len(k.Members))
	case parley.ID(i) == k.Self:
		return 0, fmt.Errorf("%w: a node does not %s itself", ErrRefused, verb)
	}
	return parley.ID(i), nil
}

// Names returns the names of members, in the order of their IDs; none is not nil.
func (k *Kernel) Names(ids parley.Set) []string {
	return append([]string{}, lists.Each(ids.All(), func(id parley.ID) string { return k.Members[id] })...)
}

// Play returns this node's machine of a protocol: a liar's, if it is to lie.
func (k *Kernel) Play(p parley.Protocol) parley.Machine {
	if k.Lies == nil {
		return p.New(k.Self)
	}
	return faulty.New(p, 0, map[parley.ID]faulty.Behavior{k.Self: *k.Lies})
}

// Slack returns how late a node may do anything, with rounds of a length.
func Slack(round time.Duration) time.Duration { return round / 5 }

// HasRoom returns an [ErrNoRoom] if a request must not be written because there is little room on the disk.
func (k *Kernel) HasRoom() error {
	if k.Store == nil {
		return nil
	}
	if err := k.Store.Room(k.Store.Least()); err != nil {
		return fmt.Errorf("%w: %w, or ask another node", ErrNoRoom, err)
	}
	return nil
}
