// Package tables implements a node's service for tables. A table is a replicated state machine. The service holds
// the node's replica of each table, and the sessions of clients. The commands of a table of level Total go through an
// order with views, those of a table of level Byzantine through a Byzantine order of all nodes.
package tables

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
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

// Config configures one replicated state machine. It must be identical on all nodes.
type Config struct {
	Name string
	// New returns a machine in its initial state. By default it is a table of keys and values (see package keyvalue).
	New func() rsm.Application
	// State names the machine, so that nodes with another machine are refused. It may be empty.
	State string
	// Level is Total or Byzantine. With Total, nodes may crash, but must not be Byzantine. With Byzantine, at most M
	// nodes may be faulty in any way, and the others have the same state. See [Table] for what a caller can rely on. A
	// table of level Byzantine has 4 to 13 members. It is durable if the node has a folder for durable state.
	Level kernel.Level
	// Sessions is how many sessions the table remembers, by default 4096. If more are open, the table takes the
	// client with the most sessions, and forgets its session with the oldest last command. A later command of this
	// session fails with ErrExpired.
	Sessions int
	// Waiting is how many commands may wait for their answers at this node, by default 4096. Further commands block
	// until one of these is answered.
	Waiting int
}

// The limits of a table.
const (
	// MaxCommand is the limit of a command, in bytes.
	MaxCommand = 60 << 10
	maxValues  = 64 << 20  // bytes of a table of keys and values
	maxAnswers = 4 << 20   // bytes of the answers of all sessions
	statePiece = 256 << 10 // bytes of a snapshot in one message
)

// Limits are limits that tests reduce.
type Limits struct {
	// Snapshot limits the snapshot of a machine, in bytes, which a joining node gets together with the sessions.
	Snapshot int
	// Compare is the number of commands after which replicas compare the hashes of their states.
	// CompareSnapshots is the same for machines that maintain no hash, and take a snapshot for each
	// comparison.
	Compare, CompareSnapshots uint64
}

// DefaultLimits are the limits of a node.
var DefaultLimits = Limits{Snapshot: 256 << 20, Compare: 4096, CompareSnapshots: 1 << 16}

// transfer is how much longer a node waits for a snapshot than for an answer.
const transfer = 2 * time.Second

// WithDefaults returns the configuration with zero fields replaced by their defaults.
func (c Config) WithDefaults() Config {
	if c.New == nil {
		c.New = func() rsm.Application { return keyvalue.Limited(maxValues) }
	}
	c.Sessions, c.Waiting = cmp.Or(c.Sessions, 4096), cmp.Or(c.Waiting, 4096)
	return c
}

// Check returns an error if n nodes cannot have the listed tables.
func Check(list []Config, n int) error {
	for _, c := range list {
		if err := c.WithDefaults().check(n); err != nil {
			return err
		}
	}
	return nil
}

// mostByzantine is how many members a table of level Byzantine may have.
const mostByzantine = 13

func (c Config) check(n int) error {
	switch {
	case c.Level != kernel.Total && c.Level != kernel.Byzantine:
		return fmt.Errorf("table %s: level %v: allowed are total and byzantine", c.Name, c.Level)
	case c.Level == kernel.Byzantine && (n < 4 || n > mostByzantine):
		return fmt.Errorf("table %s: level byzantine among %d members: allowed are 4 to %d", c.Name, n, mostByzantine)
	case c.Sessions < 1 || c.Sessions > 1<<16:
		return fmt.Errorf("table %s: %d sessions: allowed are 1 to %d", c.Name, c.Sessions, 1<<16)
	case c.Waiting < 1:
		return fmt.Errorf("table %s: waiting is %d commands: at least 1 is needed", c.Name, c.Waiting)
	}
	return nil
}

// The errors of tables, beside those of package kernel. If an error of a command does not match [kernel.ErrUnknown]
// by [errors.Is], the command has no effect, now or later.
var (
	// ErrExpired: the session is no longer remembered, or never existed. This attempt had no effect, but an earlier
	// attempt may have been applied. So the error also matches kernel.ErrUnknown.
	ErrExpired = errors.New("the session has expired: open a new one")
	// ErrStopped: this node's replica has stopped because its state differs from the state of the majority, or
	// because its machine panicked. Other nodes may serve the table. The replica starts again from a snapshot of
	// another node.
	ErrStopped = errors.New("the replica of this node has stopped")
	// ErrSessionTaken: in a table of level Byzantine, another command was applied under the number of this one, or a
	// faulty node has used up the session. This command has no effect, unless the error also matches
	// kernel.ErrUnknown. Use another session.
	ErrSessionTaken = errors.New("another command has the number of this one: open a new session")
)

// Table is this node's replica of a replicated state machine. All replicas apply all commands, including reads, in
// the same order. So commands are linearizable: all clients at all nodes see the same sequence of changes. The
// methods of Table are safe for concurrent use.
//
// In a table of level Byzantine, the order and the state are the same at all correct nodes, whatever at most M faulty
// nodes do. An answer of a correct node is linearizable, too. But a faulty node may answer anything to its own callers.
// A caller that must not rely on one node calls several nodes, and accepts an answer that m+1 of them give: see
// package cluster/api/client. A faulty node can also submit commands of its own, and commands in the sessions of
// others. A caller then gets ErrSessionTaken, and never the answer to another command than its own.
type Table struct {
	c       Config
	k       *kernel.Kernel
	limits  Limits
	process *host.Process
	order   *order        // of the commands, if the level is Byzantine
	slots   chan struct{} // held by each waiting command
	size    atomic.Int64  // bytes of the last snapshot

	mu      sync.Mutex
	calls   map[callName]*call // in sessions, until they are answered
	queue   []*call            // not sent yet
	batches map[uint64][]*call // in flight
	next    uint64             // number of the last batch
	sends   bool               // a caller is about to send
	standing
	diverged        map[parley.ID]bool // nodes whose replicas differ from the majority's, or from this one
	inspectors      []chan parley.Msg  // callers of Inspect
	positionCallers []chan uint64      // requests for the position
	lastPosition    atomic.Uint64      // the last known position
}

// standing says whether a replica serves. The table's mutex guards it.
type standing struct {
	serving bool          // a member that has the state: commands that it sends are applied
	joined  chan struct{} // closed when serving becomes true
	stopped error         // why the replica of this node answers nothing
	closed  error
}

// refuses returns an error if a command would not be applied.
func (s *standing) refuses() error {
	switch {
	case s.closed != nil:
		return s.closed
	case s.stopped != nil:
		return fmt.Errorf("%w: %w", kernel.ErrRefused, s.stopped)
	case !s.serving:
		return kernel.ErrNotMember
	}
	return nil
}

// serve handles that the replica begins or ends to serve.
func (s *standing) serve(now bool) {
	if s.serving = now; now && s.closed == nil {
		close(s.joined)
		s.joined = make(chan struct{})
	}
}

// stop handles that the replica has stopped, and returns why.
func (s *standing) stop(log *slog.Logger, m parley.Msg) error {
	s.stopped = fmt.Errorf("%w at command %d: %s", ErrStopped, m.Seq, m.Body)
	log.Error("replica stopped; this node no longer serves the table", "position", m.Seq, "reason", string(m.Body))
	return s.stopped
}

// open opens the table with an index in the configuration.
func (s *Service) open(c Config, i uint32) (*Table, error) {
	if err := c.check(s.k.Views.N); err != nil {
		return nil, err
	}
	if err := s.sameLevel(c); err != nil {
		return nil, fmt.Errorf("table %s: %w", c.Name, err)
	}
	t := &Table{
		c: c, k: s.k, limits: s.limits, slots: make(chan struct{}, c.Waiting),
		standing: standing{joined: make(chan struct{})},
		calls:    make(map[callName]*call), batches: make(map[uint64][]*call), diverged: make(map[parley.ID]bool),
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // must not match a number of an earlier incarnation
	t.next = binary.BigEndian.Uint64(b[:])
	open := s.openTotal
	if c.Level == kernel.Byzantine {
		open = s.openByzantine
	}
	if err := open(t, i); err != nil {
		return nil, fmt.Errorf("table %s: %w", c.Name, err)
	}
	return t, nil
}

// openTotal opens the machine of a table of level Total.
func (s *Service) openTotal(t *Table, i uint32) error {
	views, c := t.k.Views, t.c
	views.State, views.Compact = true, t.k.Compact
	views.Admit += parley.Tick(transfer)
	p := stack.New(
		timestamp.New(timestamp.Config{Config: views, Window: kernel.Window(views.N, views.Payload)}),
		rsm.New(rsm.Config{
			N: views.N, New: t.application, Every: t.limits.compares(c), Recover: true,
			Transfer: true, Durable: views.Durable, Sessions: c.Sessions, Answers: maxAnswers,
			Liars: views.Liars, Piece: statePiece, Longest: t.limits.Snapshot + 2*maxAnswers, Retry: parley.Tick(time.Second),
		}),
	)
	process, err := t.k.Watched(host.Options{
		Channel: kernel.FirstTable + i, Name: machine(c.Name), Machine: p.New(t.k.Self), Upper: t, After: s.after(t),
		Again: t.k.Again, Class: link.Bulk, Long: true,
	}, true)
	t.mu.Lock()
	t.process = process
	t.mu.Unlock()
	return err
}

// after returns what is called after a step of a table's machine: there may be room for more.
func (s *Service) after(t *Table) func() {
	return func() {
		t.mu.Lock()
		t.flush()
		t.mu.Unlock()
	}
}

// compares returns after how many commands the replicas of a table compare their states.
func (l Limits) compares(c Config) uint64 {
	if _, keeps := c.New().(rsm.Hasher); keeps {
		return l.Compare
	}
	return l.CompareSnapshots
}

// application returns the table's machine, wrapped by this node.
func (t *Table) application() rsm.Application {
	m := guarded{t.c.New(), t}
	if h, keeps := m.Application.(rsm.Hasher); keeps {
		return hashed{m, h}
	}
	return m
}

// guarded is a state machine whose last snapshot is measured and whose panics are logged.
type guarded struct {
	rsm.Application
	t *Table
}

// hashed is a guarded machine that maintains a hash of its state.
type hashed struct {
	guarded
	rsm.Hasher
}

// Snapshot returns a snapshot of the state.
func (m guarded) Snapshot() []byte {
	b := m.Application.Snapshot()
	m.t.size.Store(int64(len(b)))
	return b
}

// Apply applies a command. The replica stops if it panics.
func (m guarded) Apply(command []byte) []byte {
	defer func() {
		if why := recover(); why != nil {
			m.t.k.Log.Error("state machine panicked; its replica stops", "table", m.t.c.Name, "err", why, "stack",
				string(debug.Stack()))
			panic(why)
		}
	}()
	return m.Application.Apply(command)
}

// Deliver handles answers of the machine. It is part of a step of the machine.
func (t *Table) Deliver(from parley.ID, _ parley.Path, m parley.Msg) {
	switch {
	case from != t.k.Self:
	case m.Kind == rsm.Replies:
		t.replied(m.Value, m.Body)
	case m.Kind == rsm.Inspect:
		t.mu.Lock()
		if m.Value == 0 && len(t.positionCallers) > 0 {
			t.positionCallers[0] <- m.Seq // which has room
			t.positionCallers = t.positionCallers[1:]
		} else if len(t.inspectors) > 0 {
			t.inspectors[0] <- m // which has room
			t.inspectors = t.inspectors[1:]
		}
		t.mu.Unlock()
	}
}

// Indicate handles the machine's indications of views and of its own state.
func (t *Table) Indicate(_ parley.Path, m parley.Msg) {
	log := t.k.Log.With("table", t.c.Name)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch m.Kind {
	case group.Excluded:
		log.Warn("excluded from the view; this node rejoins")
		t.abandon(kernel.ErrNotMember)
	case rsm.Serving:
		t.serve(m.Value == 1)
	case group.SnapshotInstalled:
		t.stopped = nil
		delete(t.diverged, t.k.Self)
		log.Info("received the state of another node", "bytes", len(m.Body))
	case group.SnapshotWanted:
		if size := t.size.Load(); size > int64(t.limits.Snapshot) {
			log.Error("state is too large for a joining node; it cannot join", "node",
				t.k.Name(m.Origin), "bytes", size, "allowed", t.limits.Snapshot)
		}
	case rsm.Diverged, rsm.Differs:
		t.diverged[m.Origin] = true
		log.Error("replica diverged", "node", t.k.Name(m.Origin), "position", m.Seq,
			"majority", m.Kind == rsm.Diverged)
	case rsm.Parted:
		t.diverged[t.k.Self] = true
		log.Error("replica differs from the majority; it takes their state", "position", m.Seq)
		t.abandon(kernel.ErrNotMember)
	case rsm.Alike:
		delete(t.diverged, t.k.Self)
		log.Info("replica has the state of the majority again", "position", m.Seq)
	case rsm.Lacks:
		log.Error("no member has some commands; acknowledged ones may be lost", "position", m.Seq)
	case rsm.Stopped:
		t.abandon(t.stop(log, m))
	}
}

// close ends all waiting calls with err.
func (t *Table) close(err error) {
	t.mu.Lock()
	t.end(err)
	t.mu.Unlock()
}

// end closes the table for good. The lock is held.
func (t *Table) end(err error) {
	if t.closed != nil {
		return
	}
	t.closed = err
	t.abandon(err)
	for _, c := range t.inspectors {
		close(c)
	}
	t.inspectors = nil
	close(t.joined)
}

// Inspect returns how many commands the replica of this node has applied, and a hash of its state including the
// sessions. Replicas with the same position have the same hash.
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
	t.inspectors = append(t.inspectors, c)
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

// Status is the status of this node's replica of a table.
type Status struct {
	Name     string `json:"name"`
	Position uint64 `json:"position"` // commands applied
	Waiting  int    `json:"waiting"`  // commands of this node that wait for their answers
	// Stopped says why this node's replica answers nothing. It is empty if the replica answers. Diverged are the
	// nodes whose replicas were found to hold another state than the majority.
	Stopped  string   `json:"stopped,omitempty"`
	Diverged []string `json:"diverged"`
	// Serving says that this node answers: it is a member of the table and has the state. In durable mode it
	// has the state on its disk.
	Serving bool `json:"serving"`
	// ViewStatus of a table of level Byzantine has no View, because all nodes are always its Members. Its In says
	// whether this node takes part in the order.
	kernel.ViewStatus
}

// status returns the status of this replica, given the view of its machine.
func (t *Table) status(views kernel.ViewStatus) Status {
	s := Status{
		Name: t.c.Name, Position: t.position(), Waiting: len(t.slots), ViewStatus: views, Diverged: []string{},
	}
	t.mu.Lock()
	order := t.order
	t.mu.Unlock()
	in := order != nil && order.of.Member() && t.k.Takes(true) == nil // a step of the order waits for mu
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stopped != nil {
		s.Stopped = t.stopped.Error()
	}
	for id := range t.diverged { // order: they are sorted
		s.Diverged = append(s.Diverged, t.k.Name(id))
	}
	slices.Sort(s.Diverged)
	s.Serving = t.refuses() == nil
	if order != nil {
		s.In, s.Members = in, slices.Clone(t.k.Members)
	}
	return s
}

// position returns how many commands the replica of this node has applied. It asks the machine. If the disk
// delays the answer, it returns the last known position.
func (t *Table) position() uint64 {
	told := make(chan uint64, 1)
	t.mu.Lock()
	closed := t.closed != nil
	if !closed {
		t.positionCallers = append(t.positionCallers, told)
	}
	t.mu.Unlock()
	if closed || t.process.Request(parley.Msg{Kind: rsm.Inspect, Value: 1}) != nil {
		return t.lastPosition.Load()
	}
	alarm := time.NewTimer(100 * time.Millisecond)
	defer alarm.Stop()
	select {
	case at := <-told:
		t.lastPosition.Store(at)
	case <-alarm.C:
	}
	return t.lastPosition.Load()
}
