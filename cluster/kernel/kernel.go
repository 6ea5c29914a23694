// Package kernel is the part of a node that its services use. A kernel holds the identities of the node and its
// peers, the host that runs a service's machine, and the durable state. It also says whether the node accepts
// requests now. Services use the kernel and not each other, so you can read and test each service alone.
package kernel

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"parley"
	"parley/cluster/host"
	"parley/cluster/link"
	"parley/cluster/protocols"
	"parley/cluster/store"
	"parley/faulty"
	"parley/internal/lists"
	"parley/membership/group"
)

// Kernel is the part of a node that its services share. All fields are set before the first service is opened,
// and do not change afterwards.
type Kernel struct {
	Standing
	Work    Work
	Cluster string // its name
	Life    uint64 // number of this incarnation of the node
	Self    parley.ID
	Members []string // their names, by ID
	M       int      // how many members may be faulty
	Round   time.Duration
	Clock   host.Clock
	Signs   bool             // it has a key to sign with
	Lies    *faulty.Behavior // this node's faulty behavior, for tests; nil if it is correct
	Log     *slog.Logger
	Host    *host.Host
	Store   *store.Store // nil if nothing is durable
	Again   bool         // the node has started before
	Rejoin  bool         // the node has lost its records, and joins as a new member
	Intact  bool         // the node has never lost its records
	Views   group.Config // of a group of all nodes
	Compact int          // number of records after which a checkpoint replaces the log
	// Up returns the members to which this node is connected.
	Up func() parley.Set
	// Admitted returns the members that have admitted this node.
	Admitted func() parley.Set
	// Watched opens a machine with views, whose views the node tracks. A machine that suspects members is
	// notified of broken links.
	Watched func(o host.Options, suspects bool) (*host.Process, error)
	// Peers returns the statistics of the links to all others. Drift returns by how many parts per million this
	// node's clock gains on theirs, 0 while that is not known.
	Peers func() []link.PeerStats
	Drift func() float64
	// Ended is closed when the node is closed or has failed.
	Ended <-chan struct{}
	// Order opens a Byzantine order of all nodes on a channel.
	Order func(channel uint32, name string, to Orderly) (Order, error)
}

// Orderly receives what an [Order] delivers. Its methods are called within a step of the order.
type Orderly interface {
	// Deliver handles a payload. Every place in the order has a payload; a faulty node may make it empty.
	Deliver(position uint64, from parley.ID, payload []byte)
	// From says that the next delivery is the first one after a position. The order calls it after a restart, when it
	// delivers again what it has kept, at the same positions, and if this node has missed deliveries for good.
	From(position uint64)
	// Live says that the deliveries that come again after a restart are over, and this node takes part.
	Live()
}

// Order delivers payloads at all nodes. The order is the same at all correct nodes, while at most M members are
// faulty.
type Order interface {
	// Post submits a payload and returns. It blocks while too many payloads are in flight. After an error the payload
	// is never delivered.
	Post(payload []byte) error
	// Most returns the maximum length of a payload, in bytes.
	Most() int
	// Member reports whether this node takes part in the order. After a restart without its state it does not, until it
	// is admitted.
	Member() bool
	// Close ends all waiting calls.
	Close()
}

// Name returns the name of a member.
func (k *Kernel) Name(id parley.ID) string { return k.Members[id] }

// Other returns the ID of another member, for an operator's command named by verb.
func (k *Kernel) Other(name, verb string) (parley.ID, error) {
	i := slices.Index(k.Members, name)
	switch {
	case i < 0:
		return 0, fmt.Errorf("%w: %q is none of the %d members", ErrRefused, name, len(k.Members))
	case parley.ID(i) == k.Self:
		return 0, fmt.Errorf("%w: a node cannot %s itself", ErrRefused, verb)
	}
	return parley.ID(i), nil
}

// Names returns the names of members, in the order of their IDs. For an empty set the list is empty, not nil.
func (k *Kernel) Names(ids parley.Set) []string {
	return append([]string{}, lists.Each(ids.All(), func(id parley.ID) string { return k.Members[id] })...)
}

// Play returns this node's machine of a protocol: the faulty one, if Lies is set.
func (k *Kernel) Play(p parley.Protocol) parley.Machine {
	if k.Lies == nil {
		return p.New(k.Self)
	}
	return faulty.New(p, 0, map[parley.ID]faulty.Behavior{k.Self: *k.Lies})
}

// Slack returns how late a node may act, with rounds of the given length.
func Slack(round time.Duration) time.Duration { return protocols.Slack(round) }

// HasRoom returns an [ErrNoRoom] if the disk has too little room for a request.
func (k *Kernel) HasRoom() error {
	if k.Store == nil {
		return nil
	}
	if err := k.Store.Room(k.Store.Least()); err != nil {
		return fmt.Errorf("%w: %w, or ask another node", ErrNoRoom, err)
	}
	return nil
}
