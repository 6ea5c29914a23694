package cluster

import (
	"context"
	"fmt"
	"time"

	"parley/cluster/host"
	"parley/cluster/kernel"
)

// Status is the status of a node and its peers, as the node sees it.
type Status struct {
	Cluster     string    `json:"cluster"`
	Name        string    `json:"name"`
	State       NodeState `json:"state"`
	Incarnation uint64    `json:"incarnation"` // the number of this start of the node; later starts have larger numbers
	Again       bool      `json:"again"`       // the node has started before
	Started     time.Time `json:"started"`
	Durable     bool      `json:"durable"`
	M           int       `json:"m"`     // how many nodes may be faulty
	Round       string    `json:"round"` // its length

	// The cluster's clock at this node: see Reading.
	Synchronized bool          `json:"synchronized"`
	ClockBound   time.Duration `json:"clockBound,omitempty"` // in nanoseconds, if it is synchronized
	ClockOffset  time.Duration `json:"clockOffset"`

	Members []MemberStatus `json:"members"`
	Groups  []GroupStatus  `json:"groups"`
	Tables  []TableStatus  `json:"tables"`
	Streams []StreamStatus `json:"streams"` // of agreements
	Commit  *CommitStatus  `json:"commit,omitempty"`
	Store   *StoreStatus   `json:"store,omitempty"`
	// Refused counts the messages of others that machines refused, by reason.
	Refused []RefusedStatus `json:"refused"`
	// Strangers counts connections that come from no known member, by reason. Strange counts messages for
	// unknown machines.
	Strangers map[string]uint64 `json:"strangers"`
	Strange   uint64            `json:"strange"`
}

// NodeState says whether a node is running, is leaving the cluster, or has left it. See [kernel.State].
type NodeState = kernel.State

// The states of a node.
const (
	Running  = kernel.Running
	Draining = kernel.Draining // it refuses new requests
	Leaving  = kernel.Leaving
	Left     = kernel.Left     // it is closed, too
	Expelled = kernel.Expelled // the node may start again as another incarnation
)

// RefusedStatus counts the messages of one member that one machine refused, for one reason. See
// [kernel.RefusedStatus] for its fields.
type RefusedStatus = kernel.RefusedStatus

// The errors of a node that refuses new requests.
var (
	// ErrExpelled is the error of a node that the others have expelled. It matches [ErrNotMember].
	ErrExpelled = kernel.ErrExpelled
	// ErrDraining is the error of a request to a node that drains, and so refuses new requests. It matches
	// [ErrRefused].
	ErrDraining = kernel.ErrDraining
	// ErrNoRoom is the error of a request that needs a write to the disk of a node with less than 64 MiB of free
	// space. The node still answers reads. ErrNoRoom matches [ErrRefused].
	ErrNoRoom = kernel.ErrNoRoom
)

// Status returns the status of the node and its peers. Each call collects the status again. Its parts may be
// from slightly different times.
func (n *Node) Status() Status {
	clock := n.Clock()
	s := Status{
		Cluster: n.k.Cluster, Name: n.c.Name, State: n.k.State(), Incarnation: n.k.Life,
		Again: n.k.Again || n.c.Rejoin, Started: n.started, Durable: n.c.Durable, M: n.c.M, Round: n.c.Round.String(),
		Synchronized: clock.Synchronized, ClockOffset: clock.Offset,
		Strange: n.k.Host.Strange(),
	}
	if clock.Synchronized {
		s.ClockBound = clock.Bound
	}
	var abstained map[string]uint64
	s.Refused, abstained = n.k.Refused()
	in := make([][]string, len(n.c.Members))
	viewed := func(machine string) ViewStatus {
		v, members := n.members.Status(machine)
		for id := range members.All() {
			in[id] = append(in[id], machine)
		}
		return v
	}
	s.Groups = n.groups.Status(viewed)
	s.Tables = n.tables.Status(viewed)
	s.Streams = n.agree.Status(abstained)
	s.Commit = n.commits.Status()
	s.Members, s.Strangers = n.mesh.Status(in, n.members.Expelled)
	s.Store = n.k.StoreStatus()
	return s
}

// Measure returns the node's measurements of itself and its peers.
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

// Recorder returns the recorder of the last events of the node's machines.
func (n *Node) Recorder() *host.Recorder { return n.tracer.Recorder }

// DumpFlight writes the recorded events to the file flight.jsonl in the node's folder, and replaces an existing file.
// If the node has no folder, DumpFlight writes to a temporary file. It returns the file's name.
func (n *Node) DumpFlight() (file string, err error) { return n.c.folder().dump(n.tracer) }

// Forget deletes what this node knows about another node's incarnations and disk. Then this node admits the next
// connection with a certificate of the other node's name. Forget is for a legitimate node that is refused, for
// example because an attacker used its key. Forget fails with [ErrRefused] while the other node is connected, because
// a connected node is not refused.
func (n *Node) Forget(name string) error {
	id, err := n.k.Other(name, "forget")
	if err != nil {
		return err
	}
	if up, _ := n.mesh.Others(); up.Has(id) {
		return fmt.Errorf("%w: %s is connected: stop it, or revoke its certificate, before you forget it",
			ErrRefused, name)
	}
	n.k.Log.Warn("member is forgotten on request; its next incarnation is admitted", "member", name)
	return n.lives.Forget(name)
}

// Expel removes a member from all groups and tables by agreement of their members. It returns when the member
// is removed from all groups and tables in which this node takes part. The expelled node is notified, and its
// requests to these groups and tables fail with [ErrExpelled]. It rejoins only as another incarnation, by
// Join.
//
// Services that tolerate Byzantine faults do not trust a single node. A member stays in Byzantine groups, agreements,
// and transactions of protocol Agreed until m+1 nodes have been asked to expel it. The expelled node also does not
// trust a single node. It stops its groups and tables when m+1 nodes report that it is expelled. It stops the other
// services when m+1 nodes report that it is removed from these services.
func (n *Node) Expel(ctx context.Context, name string) error {
	id, err := n.k.Other(name, "expel")
	if err != nil {
		return err
	}
	if err := n.k.Takes(false); err != nil {
		return err
	}
	return n.members.Expel(ctx, id)
}
