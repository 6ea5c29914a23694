package cluster

import (
	"context"
	"errors"
	"sync"
	"time"
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
type NodeState string

// The states of a node.
const (
	Running  NodeState = "running"
	Draining NodeState = "draining" // it takes no new requests
	Leaving  NodeState = "leaving"
	Left     NodeState = "left"     // it is closed, too
	Expelled NodeState = "expelled" // it may come back as another life
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

// GroupStatus is this node's part in a group.
type GroupStatus struct {
	Name  string `json:"name"`
	Level string `json:"level"`
	ViewStatus
	*SlotStatus
}

// ViewStatus is the last view that was installed, of a group that has views.
type ViewStatus struct {
	In      bool     `json:"in"` // this node is a member now
	View    uint64   `json:"view,omitempty"`
	Members []string `json:"members,omitempty"`
	// Suspected are members that this node suspects to have failed.
	Suspected []string `json:"suspected,omitempty"`
}

// TableStatus is this node's copy of a table.
type TableStatus struct {
	Name     string `json:"name"`
	Position uint64 `json:"position"` // commands applied
	Waiting  int    `json:"waiting"`  // commands of this node
	ViewStatus
}

// StreamStatus is one stream of agreements: those of one algorithm, m and source.
type StreamStatus struct {
	Algorithm string `json:"algorithm"`
	M         int    `json:"m"`
	Source    string `json:"source,omitempty"` // no name: all are
	SlotStatus
}

// SlotStatus counts the slots of agreements, which are numbered from 1.
type SlotStatus struct {
	Opened uint64 `json:"opened"`
	Done   uint64 `json:"done"` // up to here all are over
	// Missed is the first slot that this node abstained from, 0 if there is none, and
	// Abstained how often.
	Missed    uint64 `json:"missed,omitempty"`
	Abstained uint64 `json:"abstained,omitempty"`
	// Mute tells that the node takes no part, for it has lived before.
	Mute bool `json:"mute,omitempty"`
}

// CommitStatus is this node's part in transactions.
type CommitStatus struct {
	Protocol  string    `json:"protocol"`
	Open      int       `json:"open"`      // transactions that this node coordinates
	Pending   int       `json:"pending"`   // all whose outcome it waits for
	Preparing int       `json:"preparing"` // calls of the participant under way
	Committed uint64    `json:"committed"`
	Aborted   uint64    `json:"aborted"`
	Blocked   []Outcome `json:"blocked"`
}

// StoreStatus is the durable memory of the node.
type StoreStatus struct {
	Records uint64 `json:"records"` // handed over in this life
	Durable uint64 `json:"durable"` // of them on the disk
	Bytes   uint64 `json:"bytes"`
	Error   string `json:"error,omitempty"`
}

// RefusedStatus counts what one machine did not accept of one member.
type RefusedStatus struct {
	Machine string `json:"machine"`
	From    string `json:"from"`
	Why     string `json:"why"`
	Times   uint64 `json:"times"`
}

// ErrExpelled is the error of a node that the others have expelled. It is [ErrOut].
var ErrExpelled error = expelled{}

type expelled struct{}

func (expelled) Error() string {
	return "this node has been expelled: it may come back when it is started again"
}
func (expelled) Is(target error) bool { return target == ErrOut }

// ErrDraining is the error of a request to a node that takes no new ones. It is [ErrRefused].
var ErrDraining error = draining{}

type draining struct{}

func (draining) Error() string        { return "the node takes no new requests: it is about to leave" }
func (draining) Is(target error) bool { return target == ErrRefused }

// admin is how the node stands.
type admin struct {
	mu    sync.Mutex
	state NodeState
}

// takes tells why the node takes no new request, if it does not.
func (n *Node) takes() error {
	n.admin.mu.Lock()
	defer n.admin.mu.Unlock()
	switch n.admin.state {
	case Draining, Leaving:
		return ErrDraining
	case Expelled:
		return ErrExpelled
	case Left:
		return ErrClosed
	}
	return nil
}

var errTodo = errors.New("cluster: not yet")

// Status tells how the node and all it knows of stand.
func (n *Node) Status() Status { return Status{} }

// Leave leaves all groups and tables in order, and then closes the node: the others go on
// without it at once, and do not have to suspect it first. Where there are no views, in
// Byzantine groups and in agreements, it counts as silent from then on. It comes back by
// Join. If the context ends before, the node is closed all the same, and the error tells
// in what it was still a member.
func (n *Node) Leave(ctx context.Context) error { return errTodo }

// Drain takes no new requests, waits for what is under way, and leaves.
func (n *Node) Drain(ctx context.Context) error { return errTodo }

// Expel excludes a member from all groups and tables, by agreement of their members. It
// returns when it is out of those in which this node is. The member learns it, and all that it
// is asked for then is ErrExpelled. It comes back only as another life, by Join.
//
// What is to hold in spite of liars takes no single node's word: from Byzantine groups, from
// agreements and from transactions a member is shut out when m+1 nodes have been asked to expel it.
func (n *Node) Expel(ctx context.Context, name string) error { return errTodo }
