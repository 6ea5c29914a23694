// Package tables is a node's copies of replicated state machines, and the sessions of clients with these.
package tables

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/broadcast/timestamp"
	"parley/cluster/host"
	"parley/cluster/kernel"
	"parley/cluster/link"
	"parley/membership/group"
	"parley/replica/keyvalue"
	"parley/replica/rsm"
	"parley/stack"
)

// Config configures one replicated state machine. It is the same at all nodes.
type Config struct {
	Name string
	// New makes a machine in its first state; by default a table of keys and values,
	// see package keyvalue.
	New func() rsm.Application
	// State names the machine, so that nodes with another one are refused. It may be empty.
	State string
	// Level is Total: others are refused.
	Level kernel.Level
	// Sessions is how many are remembered; 4096 by default. If more are open, the client who has most
	// loses the one that was silent the longest, and is told so if it asks again.
	Sessions int
	// Waiting is how many commands may wait for their answers at this node at a time; 4096
	// by default. Who asks for more is held back.
	Waiting int
}

// The limits of a table.
const (
	// MaxCommand is how many bytes a command may have.
	MaxCommand = 60 << 10
	maxValues  = 64 << 20  // bytes of a table of keys and values
	maxAnswers = 4 << 20   // of all sessions together
	statePiece = 256 << 10 // of a state, in one message
)

// Limits are what a test makes smaller.
type Limits struct {
	// Snapshot is how long the state of a machine may be, of which a node that joins has to be given a copy, with the
	// sessions.
	Snapshot int
	// Compare is after how many commands copies compare the hashes of their states. CompareSnapshots is the same
	// for machines that keep no hash themselves: they take a snapshot for it.
	Compare, CompareSnapshots uint64
}

// DefaultLimits are the limits of a node that says nothing else.
var DefaultLimits = Limits{Snapshot: 256 << 20, Compare: 4096, CompareSnapshots: 1 << 16}

// transfer is how much longer than for an answer a node waits that asks for a state.
const transfer = 2 * time.Second

// WithDefaults fills in what is 0.
func (c Config) WithDefaults() Config {
	if c.New == nil {
		c.New = func() rsm.Application { return keyvalue.Limited(maxValues) }
	}
	c.Sessions, c.Waiting = cmp.Or(c.Sessions, 4096), cmp.Or(c.Waiting, 4096)
	return c
}

func (c Config) check() error {
	switch {
	case c.Level != kernel.Total:
		return fmt.Errorf("table %s: its order must be total", c.Name)
	case c.Sessions < 1 || c.Sessions > 1<<16:
		return fmt.Errorf("table %s: %d sessions: allowed are 1 to %d", c.Name, c.Sessions, 1<<16)
	case c.Waiting < 1:
		return fmt.Errorf("table %s: %d commands that wait: at least 1 is needed", c.Name, c.Waiting)
	}
	return nil
}

// The errors of tables, beside those of package kernel. Each error of a command is, by [errors.Is], either
// [kernel.ErrUnknown], or else nothing of the command was done, nor will be.
var (
	// ErrExpired: the session is not remembered any more, or never was. The command is not
	// carried out, unless it was when it was asked before: it is kernel.ErrUnknown, too.
	ErrExpired = errors.New("the session has expired")
	// ErrStopped: the replica of this node has stopped, because its state is not that of the
	// majority, or because its machine panicked. Other nodes may serve the table. It starts
	// again from the state of another node.
	ErrStopped = errors.New("the replica of this node has stopped")
)

// Table is this node's copy of a replicated state machine. A command goes through the order
// of all nodes, reads too: what is answered was so when it was asked or later, and all
// clients at all nodes see one sequence of changes.
type Table struct {
	c       Config
	k       *kernel.Kernel
	limits  Limits
	process *host.Process
	slots   chan struct{} // one for each command that waits
	size    atomic.Int64  // of the last snapshot

	mu      sync.Mutex
	calls   map[callName]*call // in sessions, from when they are asked until they are answered
	queue   []*call            // not sent yet
	packs   map[uint64][]*call // under way
	next    uint64             // number of a pack
	sends   bool               // somebody is about to send
	serving bool               // it is a member, and has the state: what is sent is carried out
	joined  chan struct{}      // closed when it is so again
	stopped error              // why the copy of this node answers nothing
	differs map[parley.ID]bool // whose copies differ from those of the majority, or from this one
	closed  error
	looks   []chan parley.Msg // who waits for what Inspect tells
	spots   []chan uint64     // who waits for the position alone
	spot    atomic.Uint64     // the last that was told
}

// open opens a table's machine on a channel.
func (s *Service) open(c Config, channel uint32) (*Table, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	t := &Table{
		c: c, k: s.k, limits: s.limits, slots: make(chan struct{}, c.Waiting), joined: make(chan struct{}),
		calls: make(map[callName]*call), packs: make(map[uint64][]*call), differs: make(map[parley.ID]bool),
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // no number of a life before is taken for one of this
	t.next = binary.BigEndian.Uint64(b[:])
	views := s.k.Views
	views.State, views.Compact = true, s.k.Compact
	views.Admit += parley.Tick(transfer)
	p := stack.New(
		timestamp.New(timestamp.Config{Config: views, Window: kernel.Window(views.N, views.Payload)}),
		rsm.New(rsm.Config{
			N: views.N, New: t.application, Every: s.limits.compares(c), Recover: true,
			Transfer: true, Durable: views.Durable, Sessions: c.Sessions, Answers: maxAnswers,
			Liars: views.Liars, Piece: statePiece, Longest: s.limits.Snapshot + 2*maxAnswers, Retry: parley.Tick(time.Second),
		}),
	)
	process, err := s.k.Watched(host.Options{
		Channel: channel, Name: machine(c.Name), Machine: p.New(s.k.Self), Upper: t,
		After: func() { // there may be room for more
			t.mu.Lock()
			t.flush()
			t.mu.Unlock()
		},
		Again: s.k.Again, Class: link.Bulk, Long: true,
	}, true)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", c.Name, err)
	}
	t.mu.Lock()
	t.process = process
	t.mu.Unlock()
	return t, nil
}

// compares is after how many commands the copies of a table compare their states.
func (l Limits) compares(c Config) uint64 {
	if _, keeps := c.New().(rsm.Hasher); keeps {
		return l.Compare
	}
	return l.CompareSnapshots
}

// application makes the table's machine, as this node looks after it.
func (t *Table) application() rsm.Application {
	m := guarded{t.c.New(), t}
	if h, keeps := m.Application.(rsm.Hasher); keeps {
		return hashed{m, h}
	}
	return m
}

// guarded is a state machine whose last snapshot is measured, and whose panics are logged.
type guarded struct {
	rsm.Application
	t *Table
}

// hashed is one that keeps a hash of its state.
type hashed struct {
	guarded
	rsm.Hasher
}

// Snapshot returns the state.
func (m guarded) Snapshot() []byte {
	b := m.Application.Snapshot()
	m.t.size.Store(int64(len(b)))
	return b
}

// Apply carries out a command. The copy stops if it panics.
func (m guarded) Apply(command []byte) []byte {
	defer func() {
		if why := recover(); why != nil {
			m.t.k.Log.Error("application panicked", "table", m.t.c.Name, "why", why, "stack", string(debug.Stack()))
			panic(why)
		}
	}()
	return m.Application.Apply(command)
}

// Deliver takes what the machine answers. It is part of a step of the machine.
func (t *Table) Deliver(from parley.ID, _ parley.Path, m parley.Msg) {
	switch {
	case from != t.k.Self:
	case m.Kind == rsm.Replies:
		t.replied(m.Value, m.Body)
	case m.Kind == rsm.Inspect:
		t.mu.Lock()
		if m.Value == 0 && len(t.spots) > 0 {
			t.spots[0] <- m.Seq // which has room
			t.spots = t.spots[1:]
		} else if len(t.looks) > 0 {
			t.looks[0] <- m // which has room
			t.looks = t.looks[1:]
		}
		t.mu.Unlock()
	}
}

// Indicate takes what the machine says of views and of itself.
func (t *Table) Indicate(_ parley.Path, m parley.Msg) {
	log := t.k.Log.With("table", t.c.Name)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch m.Kind {
	case group.Excluded:
		log.Warn("out of the view: this node is to join again")
		t.abandon(kernel.ErrNotMember)
	case rsm.Serving:
		if t.serving = m.Value == 1; t.serving && t.closed == nil {
			close(t.joined)
			t.joined = make(chan struct{})
		}
	case group.SnapshotInstalled:
		t.stopped = nil
		delete(t.differs, t.k.Self)
		log.Info("has the state of another node", "bytes", len(m.Body))
	case group.SnapshotWanted:
		if size := t.size.Load(); size > int64(t.limits.Snapshot) {
			log.Error("a node that joins does not take the state: it is too long", "node",
				t.k.Name(m.Origin), "bytes", size, "allowed", t.limits.Snapshot)
		}
	case rsm.Diverged, rsm.Differs:
		t.differs[m.Origin] = true
		log.Error("replica diverged", "node", t.k.Name(m.Origin), "position", m.Seq,
			"majority", m.Kind == rsm.Diverged)
	case rsm.Parted:
		t.differs[t.k.Self] = true
		log.Error("replica differs from that of the others: it takes theirs", "position", m.Seq)
		t.abandon(kernel.ErrNotMember)
	case rsm.Alike:
		delete(t.differs, t.k.Self)
		log.Info("has the state of the others", "position", m.Seq)
	case rsm.Lacks:
		log.Error("the table goes on without what no member has: acknowledged commands may be lost", "position", m.Seq)
	case rsm.Stopped:
		t.stopped = fmt.Errorf("%w at command %d: %s", ErrStopped, m.Seq, m.Body)
		log.Error("replica stopped; this node serves the table no more", "position", m.Seq, "why", string(m.Body))
		t.abandon(t.stopped)
	}
}

// close ends all that waits.
func (t *Table) close(err error) {
	t.mu.Lock()
	t.end(err)
	t.mu.Unlock()
}

// end is for good. The lock is held.
func (t *Table) end(err error) {
	if t.closed != nil {
		return
	}
	t.closed = err
	t.abandon(err)
	for _, c := range t.looks {
		close(c)
	}
	t.looks = nil
	close(t.joined)
}

// Inspect tells how many commands the copy of this node has applied, and a hash of its
// state, the sessions too: copies with one position have one hash.
func (t *Table) Inspect(ctx context.Context) (position, hash uint64, err error) {
	if why := t.k.Broken(); why != nil {
		return 0, 0, why
	}
	c := make(chan parley.Msg, 1)
	t.mu.Lock()
	if t.closed != nil {
		t.mu.Unlock()
		return 0, 0, t.closed
	}
	t.looks = append(t.looks, c)
	t.mu.Unlock()
	if err := t.process.Request(parley.Msg{Kind: rsm.Inspect}); err != nil {
		return 0, 0, err
	}
	select {
	case m, ok := <-c:
		if !ok {
			return 0, 0, kernel.ErrClosed
		}
		return m.Seq, m.Value, nil
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
}

// Status is this node's copy of a table.
type Status struct {
	Name     string `json:"name"`
	Position uint64 `json:"position"` // commands applied
	Waiting  int    `json:"waiting"`  // commands of this node
	// Stopped is why this node's replica answers nothing, empty if it does, and Diverged are
	// the nodes whose replicas were found to have another state.
	Stopped  string   `json:"stopped,omitempty"`
	Diverged []string `json:"diverged"`
	// Serving tells that this node answers: it is a member of the table, and has the state, in
	// durable mode on its disk.
	Serving bool `json:"serving"`
	kernel.ViewStatus
}

// status is the status of this copy, given what is known of the views of its machine.
func (t *Table) status(views kernel.ViewStatus) Status {
	s := Status{
		Name: t.c.Name, Position: t.position(), Waiting: len(t.slots), ViewStatus: views, Diverged: []string{},
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped != nil {
		s.Stopped = t.stopped.Error()
	}
	for id := range t.differs { // order: they are sorted
		s.Diverged = append(s.Diverged, t.k.Name(id))
	}
	slices.Sort(s.Diverged)
	s.Serving = t.refuses() == nil
	return s
}

// position is how many commands the copy of this node has applied. It asks the machine, and
// is the number it returned before if the disk keeps the answer back.
func (t *Table) position() uint64 {
	told := make(chan uint64, 1)
	t.mu.Lock()
	closed := t.closed != nil
	if !closed {
		t.spots = append(t.spots, told)
	}
	t.mu.Unlock()
	if closed || t.process.Request(parley.Msg{Kind: rsm.Inspect, Value: 1}) != nil {
		return t.spot.Load()
	}
	alarm := time.NewTimer(100 * time.Millisecond)
	defer alarm.Stop()
	select {
	case at := <-told:
		t.spot.Store(at)
	case <-alarm.C:
	}
	return t.spot.Load()
}
