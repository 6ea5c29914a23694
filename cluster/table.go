package cluster

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime/debug"
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
	"parley/replica/service"
	"parley/stack"
)

// TableConfig is that of one replicated state machine, the same at all nodes.
type TableConfig struct {
	Name string
	// New makes a machine in its first state; by default a table of keys and values,
	// see package keyvalue.
	New func() service.Application
	// State names the machine, so that nodes with another one are refused. It may be empty.
	State string
	// Level is Total: others are refused.
	Level Level
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

// maxSnapshot is how long the state of a machine may be, of which a node that joins has to be
// given a copy, with the sessions. A test does not fill as much.
var maxSnapshot = 256 << 20

// compactEvery is after how many records the state of a table replaces its log: a test may
// not wait for so many.
var compactEvery = 4096

// transfer is how much longer than for an answer a node waits that asks for a state.
const transfer = 2 * time.Second

func (c TableConfig) withDefaults() TableConfig {
	if c.New == nil {
		c.New = func() service.Application { return keyvalue.Limited(maxValues) }
	}
	if c.Sessions == 0 {
		c.Sessions = 4096
	}
	if c.Waiting == 0 {
		c.Waiting = 4096
	}
	return c
}

func (c TableConfig) check() error {
	switch {
	case c.Level != Total:
		return fmt.Errorf("table %s: its order must be total", c.Name)
	case c.Sessions < 1 || c.Sessions > 1<<16:
		return fmt.Errorf("table %s: %d sessions: allowed are 1 to %d", c.Name, c.Sessions, 1<<16)
	case c.Waiting < 1:
		return fmt.Errorf("table %s: %d commands that wait: at least 1 is needed", c.Name, c.Waiting)
	}
	return nil
}

// The errors of tables, beside [ErrOut] and [ErrClosed]. Each error of a command is, by [errors.Is], either
// ErrUnknown, or else nothing of the command was done, nor will be.
var (
	// ErrRefused: nothing was done.
	ErrRefused = kernel.ErrRefused
	// ErrUnknown: the command may have been carried out, or may still be. To ask again with
	// the same session and number tells, and does it once in any case.
	ErrUnknown = kernel.ErrUnknown
	// ErrExpired: the session is not remembered any more, or never was. The command is not
	// carried out, unless it was when it was asked before: it is ErrUnknown, too.
	ErrExpired = errors.New("the session has expired")
	// ErrStopped: the replica of this node has stopped, because its state is not that of the
	// majority, or because its machine panicked. Other nodes may serve the table. It starts
	// again from the state of another node: see Config.Rejoin.
	ErrStopped = errors.New("the replica of this node has stopped")
)

// Table is this node's copy of a replicated state machine. A command goes through the order
// of all nodes, reads too: what is answered was so when it was asked or later, and all
// clients at all nodes see one sequence of changes.
type Table struct {
	c       TableConfig
	n       *Node
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

// newTables opens the tables.
func (n *Node) newTables() error {
	for i, c := range n.c.Tables {
		if n.tables[c.Name] != nil {
			return fmt.Errorf("cluster: two tables are named %q", c.Name)
		}
		t, err := n.newTable(c.withDefaults(), kernel.FirstTable+uint32(i))
		if err != nil {
			return fmt.Errorf("cluster: %w", err)
		}
		n.tables[c.Name] = t
	}
	return nil
}

// newTable opens a table's machine on a channel.
func (n *Node) newTable(c TableConfig, channel uint32) (*Table, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	t := &Table{
		c: c, n: n, slots: make(chan struct{}, c.Waiting), joined: make(chan struct{}),
		calls: make(map[callName]*call), packs: make(map[uint64][]*call), differs: make(map[parley.ID]bool),
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // no number of a life before is taken for one of this
	t.next = binary.BigEndian.Uint64(b[:])
	views := n.c.views()
	views.State, views.Compact = true, compactEvery
	views.Admit += parley.Tick(transfer)
	p := stack.New(
		timestamp.New(timestamp.Config{Config: views, Window: kernel.Window(views.N, views.Payload)}),
		service.New(service.Config{
			N: views.N, New: t.application, Every: c.compares(), Recover: true,
			Transfer: true, Durable: views.Durable, Sessions: c.Sessions, Answers: maxAnswers,
			Liars: views.Liars, Piece: statePiece, Longest: maxSnapshot + 2*maxAnswers, Retry: parley.Tick(time.Second),
		}),
	)
	process, err := n.k.Watched(host.Options{
		Channel: channel, Name: "table/" + c.Name, Machine: p.New(n.k.Self), Upper: t,
		After: t.after, Again: n.k.Again, Class: link.Bulk, Long: true,
	}, true)
	if err != nil {
		return nil, fmt.Errorf("table %s: %w", c.Name, err)
	}
	t.mu.Lock()
	t.process = process
	t.mu.Unlock()
	return t, nil
}

// compareEvery is after how many commands copies compare the hashes of their states. Of machines
// that keep none themselves, they take a snapshot for that.
var (
	compareEvery          uint64 = 4096
	compareEverySnapshots uint64 = 1 << 16
)

// compares is after how many commands the copies of the table compare their states.
func (c TableConfig) compares() uint64 {
	if _, keeps := c.New().(service.Hasher); keeps {
		return compareEvery
	}
	return compareEverySnapshots
}

// application makes the table's machine, as this node looks after it.
func (t *Table) application() service.Application {
	m := guarded{t.c.New(), t}
	if h, keeps := m.Application.(service.Hasher); keeps {
		return hashed{m, h}
	}
	return m
}

// guarded is a state machine whose last snapshot is measured, and whose panics are logged.
type guarded struct {
	service.Application
	t *Table
}

// hashed is one that keeps a hash of its state.
type hashed struct {
	guarded
	service.Hasher
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
			m.t.n.c.Log.Error("application panicked", "table", m.t.c.Name, "why", why, "stack", string(debug.Stack()))
			panic(why)
		}
	}()
	return m.Application.Apply(command)
}

// Table returns this node's copy of a state machine. One of a name that is not configured fails
// with ErrNotConfigured whatever it is asked.
func (n *Node) Table(name string) *Table {
	if t := n.tables[name]; t != nil {
		return t
	}
	t := &Table{
		c: TableConfig{Name: name}.withDefaults(), n: n, slots: make(chan struct{}, 1), joined: make(chan struct{}),
		closed: kernel.NotConfigured("table", name, n.tables),
	}
	close(t.joined)
	return t
}

// Deliver takes what the machine answers. It is part of a step of the machine.
func (t *Table) Deliver(from parley.ID, _ parley.Path, m parley.Msg) {
	switch {
	case from != t.n.k.Self:
	case m.Kind == service.Replies:
		t.replied(m.Value, m.Body)
	case m.Kind == service.Inspect:
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
	log := t.n.c.Log.With("table", t.c.Name)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch m.Kind {
	case group.Out:
		log.Warn("out of the view: this node is to join again")
		t.abandon(ErrOut)
	case service.Serving:
		if t.serving = m.Value == 1; t.serving && t.closed == nil {
			close(t.joined)
			t.joined = make(chan struct{})
		}
	case group.Restored:
		t.stopped = nil
		delete(t.differs, t.n.k.Self)
		log.Info("has the state of another node", "bytes", len(m.Body))
	case group.Wanted:
		if size := t.size.Load(); size > int64(maxSnapshot) {
			log.Error("a node that joins does not take the state: it is too long", "node",
				t.n.c.Members[m.Origin].Name, "bytes", size, "allowed", maxSnapshot)
		}
	case service.Diverged, service.Differs:
		t.differs[m.Origin] = true
		log.Error("replica diverged", "node", t.n.c.Members[m.Origin].Name, "position", m.Seq,
			"majority", m.Kind == service.Diverged)
	case service.Parted:
		t.differs[t.n.k.Self] = true
		log.Error("replica differs from that of the others: it takes theirs", "position", m.Seq)
		t.abandon(ErrOut)
	case service.Alike:
		delete(t.differs, t.n.k.Self)
		log.Info("has the state of the others", "position", m.Seq)
	case service.Lacks:
		log.Error("the table goes on without what no member has: acknowledged commands may be lost", "position", m.Seq)
	case service.Stopped:
		t.stopped = fmt.Errorf("%w at command %d: %s", ErrStopped, m.Seq, m.Body)
		log.Error("replica stopped; this node serves the table no more", "position", m.Seq, "why", string(m.Body))
		t.abandon(t.stopped)
	}
}

// after is called when a step is over that delivered something: there may be room for more.
func (t *Table) after() {
	t.mu.Lock()
	t.flush()
	t.mu.Unlock()
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
	if why := t.n.k.Broken(); why != nil {
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
	if err := t.process.Request(parley.Msg{Kind: service.Inspect}); err != nil {
		return 0, 0, err
	}
	select {
	case m, ok := <-c:
		if !ok {
			return 0, 0, ErrClosed
		}
		return m.Seq, m.Value, nil
	case <-ctx.Done():
		return 0, 0, ctx.Err()
	}
}
