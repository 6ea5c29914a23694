package cluster

import (
	"context"
	"fmt"
	"time"

	"parley/cluster/host"
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
type RefusedStatus = kernel.RefusedStatus

// The errors of a node that takes nothing new.
var (
	// ErrExpelled is the error of a node that the others have expelled. It is [ErrNotMember].
	ErrExpelled = kernel.ErrExpelled
	// ErrDraining is the error of a request to a node that takes no new ones. It is [ErrRefused].
	ErrDraining = kernel.ErrDraining
	// ErrNoRoom is the error of a request to a node with less than 64 MiB of room on its disk: the request would
	// be written there. Reads are answered. It is [ErrRefused].
	ErrNoRoom = kernel.ErrNoRoom
)

// Status tells how the node and all it knows of stand. It is made anew for each call, and
// what is in it may be some steps apart.
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
	s.Groups = n.groups.Status(viewed, abstained)
	s.Tables = n.tables.Status(viewed)
	s.Streams = n.agree.Status(abstained)
	s.Commit = n.commits.Status()
	s.Members, s.Strangers = n.mesh.Status(in, n.members.Expelled)
	s.Store = n.k.StoreStatus()
	return s
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

// Recorder is what keeps the last events of the node's machines.
func (n *Node) Recorder() *host.Recorder { return n.tracer.Recorder }

// DumpFlight writes what the recorder has into the file flight.jsonl of the node's folder,
// in place of one that is there, or into a temporary file if the node has no folder, and
// returns its name.
func (n *Node) DumpFlight() (file string, err error) { return n.c.folder().dump(n.tracer) }

// Forget has this node forget what it knows of another one's lives and of its disk, and let in whoever comes next with
// a certificate of that name. It is for a node that is refused though it is the right one, such as after somebody else
// held its key. It fails with [ErrRefused] while the other node is connected, for then it is believed.
func (n *Node) Forget(name string) error {
	id, err := n.k.Other(name, "forget")
	if err != nil {
		return err
	}
	if up, _ := n.mesh.Others(); up.Has(id) {
		return fmt.Errorf("%w: %s is connected and believed: stop it, or revoke its certificate, before it is forgotten",
			ErrRefused, name)
	}
	n.k.Log.Warn("what was known of a node is forgotten, because an administrator asked for it", "member", name)
	return n.lives.Forget(name)
}

// Expel excludes a member from all groups and tables, by agreement of their members. It
// returns when it is out of all those in which this node is. The member learns it, and all
// that it is asked for there is [ErrExpelled]. It comes back only as another life, by Join.
//
// What is to hold in spite of liars takes no single node's word: from Byzantine groups,
// agreements and transactions by these a member is shut out when m+1 nodes have been asked
// to expel it, and until then it goes on in them. It learns of either from m+1 nodes.
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
