package cluster

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/agreement/consensus"
	"parley/clock/convergence"
	"parley/cluster/agree"
	"parley/cluster/cert"
	"parley/cluster/clocks"
	"parley/cluster/commits"
	"parley/cluster/disk"
	"parley/cluster/groups"
	"parley/cluster/host"
	"parley/cluster/kernel"
	"parley/cluster/link"
	"parley/cluster/tables"
	"parley/faulty"
	"parley/membership/group"
)

// Member is one node of a cluster.
type Member struct {
	Name    string
	Address string // host and port that it listens on
	Signer  ed25519.PublicKey
}

// Config is what a node knows. Members and Groups are alike at all nodes.
type Config struct {
	Name    string // which of the members this is
	Members []Member
	Self    *cert.Self
	Trust   *cert.Trust
	// Listen, if it is given, is used in place of listening on the address.
	Listen net.Listener
	// Network, if it is given, carries what nodes send each other in place of the system's
	// sockets. A node on another network takes nothing but its disk from the system: without
	// a Clock it goes by package time, and so do its alarms, so that in a bubble of
	// testing/synctest it lives in the bubble's time. See cluster/link/memory.
	Network link.Network
	// Dir is the folder for what must outlive the process. Without one nothing does, and
	// a process that has ended must not come back under its name, but with Rejoin. With one, a process that
	// comes back is let in again by those who are there. In it is also what life of each
	// other node was the last that this one has seen.
	Dir string
	// Disk is where Dir lies; nil: the system's. On a disk.Memory a node in a bubble of testing/synctest
	// waits for no real disk, and the test decides what a crash leaves and which call fails. Traces and the
	// last events are files of the system all the same.
	Disk disk.Disk
	// Durable keeps what is delivered on the disk before anybody is told, so that all may
	// come back after all have ended; except in groups of level Byzantine, which are in memory.
	// It needs Dir.
	Durable bool
	// DiskLimit is how long one call of the disk may take, as a write or a sync, before the disk counts
	// as failed and the node stops: 100 ms to 1 h, by default 5 s. It is a node's own.
	DiskLimit time.Duration
	// Rejoin says that the node has lost what it had in Dir, which is empty: it is to join
	// the others as a new one, and not to begin with them. Without it they refuse who comes
	// back with nothing. It means nothing in later lives. If more than a minority lose what
	// they had, what was delivered may be lost, too.
	Rejoin bool
	Groups []GroupConfig
	Tables []TableConfig
	// Participant does this node's part of transactions; without one it votes no.
	Participant Participant
	Commit      CommitConfig
	// M is how many nodes may lie, for what is to hold against liars; by default as many
	// as fewer than a third of the nodes are.
	M int
	// Round is the length of a round. A fifth of it is how late a node may do anything, a
	// seventh in agreements by request or under a name, and a tenth how long a message may
	// take. By default 100 ms.
	Round  time.Duration
	Times  Times
	Clocks ClockConfig
	// Clock is what this node goes by; by default that of its machine, or with a Network the
	// time since it joined. It is for tests and laboratories.
	Clock host.Clock
	// Agreements are those that the nodes have, alike and in the same order at all of them; by
	// default by every algorithm in spite of every number of liars that it tolerates, EIG with
	// the most of them first. They share what a node has of time and memory for what liars may
	// begin: the first one has half of it, and the others share the rest. Name the only one
	// that is needed, and it has everything: twice as many may go on at a time.
	Agreements []Agreement
	// Links are what nodes are linked by, alike at all of them; by default streams.
	Links Links
	// SignerKey is what this node signs with, where agreements need that; the members know
	// its public half. Without it the node takes no part in them.
	SignerKey ed25519.PrivateKey
	// Trace, if it is set, has the node write down all that its machines do.
	Trace *Tracing
	// Lab makes the node lie. It is for laboratories alone.
	Lab *Lab
	// Broken is called if the node can not go on: its disk failed, or a machine broke. Every call of
	// the node fails from then on, with ErrClosed and the reason, and Join does if it has not returned.
	// Broken may be called more than once, and must not block; who is told closes the node. Without
	// it the node closes itself.
	Broken func(error)
	Log    *slog.Logger

	hooks hooks
}

// Lab is for laboratories: it makes a node lie.
type Lab struct {
	// Traitor is how the node behaves in agreements, and in groups of level Byzantine.
	Traitor faulty.Behaviour
}

// hooks are what tests change: the length of logs, the versions of the wire, the limits of links, what a node sends.
type hooks struct {
	logSize          int64
	wireMin, wireMax uint16
	limits           link.Limits
	meddle           func(to parley.ID, packet []byte, send func([]byte))
	wrap             func(link.Transport) link.Transport
	hear             func(from parley.ID, channel uint32, b []byte)
}

// Times are how long a node waits for what. What is 0 has a default, for a local network.
type Times struct {
	Beat    time.Duration // between two signs of life; 100 ms
	Suspect time.Duration // how long a member may be silent; 1 s
	Flush   time.Duration // how long a change of the view waits for a member; 500 ms
	Retry   time.Duration // before somebody else begins a change; 1 s
}

// WithDefaults returns the times with what was left 0 filled in.
func (t Times) WithDefaults() Times {
	or := func(x *time.Duration, otherwise time.Duration) {
		if *x == 0 {
			*x = otherwise
		}
	}
	or(&t.Beat, 100*time.Millisecond)
	or(&t.Suspect, time.Second)
	or(&t.Flush, 500*time.Millisecond)
	or(&t.Retry, time.Second)
	return t
}

// DefaultRound is the length of a round if nothing else is configured.
const DefaultRound = 100 * time.Millisecond

// CheckClocks tells what is wrong with the configuration of the clocks: that they can not
// be kept together so.
func (c Config) CheckClocks() error {
	_, err := c.filled().plan()
	return err
}

// filled returns the configuration with m and the length of rounds filled in.
func (c Config) filled() Config {
	if c.M == 0 {
		c.M = (len(c.Members) - 1) / 3
	}
	if c.Round == 0 {
		c.Round = DefaultRound
	}
	if c.DiskLimit == 0 {
		c.DiskLimit = defaultDiskLimit
	}
	return c
}

// plan is what the clocks go by.
func (c Config) plan() (convergence.Plan, error) { return c.Clocks.Plan(len(c.Members), c.M, c.Round) }

// CheckGroups tells what is wrong with the groups of the configuration, or with how many of
// the members may lie.
func (c Config) CheckGroups() error {
	c = c.filled()
	n := len(c.Members)
	if most := max(0, n-1) / 3; c.M < 0 || c.M > most {
		return fmt.Errorf("%d liars among %d members: allowed are 0 to %d, for n > 3m", c.M, n, most)
	}
	return groups.Check(c.Groups, n)
}

// views is the configuration of a group of all nodes.
func (c Config) views() group.Config {
	t := c.Times.WithDefaults()
	v := group.Config{
		N: len(c.Members), Return: true, Durable: c.Durable, Liars: (len(c.Members) - 1) / 3,
		Flush: parley.Tick(t.Flush), Wait: parley.Tick(t.Retry), Stagger: parley.Tick(t.Retry / 2),
		Admit: parley.Tick(t.Retry), First: parley.Tick(t.Retry / 2), Become: parley.Tick(t.Suspect + t.Flush + 2*t.Retry),
	}
	v.Detector.Period, v.Detector.Timeout = parley.Tick(t.Beat), parley.Tick(t.Suspect)
	v.Detector.Late = parley.Tick(t.Suspect / 4)
	v.Detector.Grace = parley.Tick(linkGrace)
	if i := c.self(); c.Rejoin && i >= 0 && v.N > 1 {
		v.Initial = parley.Everyone(v.N)
		v.Initial.Remove(parley.ID(i))
	}
	return v.WithDefaults()
}

// Node is this process's part of the cluster.
type Node struct {
	c      Config
	k      kernel.Kernel
	mesh   link.Transport
	links  connections
	lives  *lives
	stood  stood
	waits  atomic.Pointer[host.Host] // for the disk
	groups *groups.Service
	tables *tables.Service

	commits *commits.Service
	admin   admin
	agree   *agree.Service
	ended   chan struct{} // closed when the node is, or can not go on
	once    sync.Once     // of it
	tracer  tracer
	clock   *clocks.Service
}

// stood are the ends of a goroutine: see stand.
type stood struct {
	end    chan struct{} // closed when it is to end; nil: it was not begun
	parted chan struct{} // gets something when a connection has ended
	done   chan struct{} // closed when it has ended
}

// Join starts the node, and returns when it is connected to the others or has waited for
// them for some time. The context is for the joining alone.
func Join(ctx context.Context, c Config) (*Node, error) {
	n := &Node{c: c}
	if n.c.Log == nil {
		n.c.Log = slog.New(slog.DiscardHandler)
	}
	n.c = n.c.filled()
	if n.c.Clock == nil && n.c.Network == nil {
		n.c.Clock = host.NewSystem()
	} else if n.c.Clock == nil {
		n.c.Clock = host.NewElapsed()
	}
	if err := n.findSelf(); err != nil {
		return nil, err
	}
	if err := n.checkSigner(); err != nil {
		return nil, err
	}
	if err := cmp.Or(n.c.CheckGroups(), n.c.CheckAgreements(), n.c.CheckLinks(), n.c.CheckDisk()); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	if c.Self == nil {
		return nil, errors.New("cluster: the node has no certificate (Self)")
	}
	if c.Trust == nil {
		return nil, errors.New("cluster: the node trusts no authority (Trust)")
	}
	n.ended, n.stood.parted = make(chan struct{}), make(chan struct{}, 1)
	n.k.Ended, n.agree, n.groups = n.ended, agree.New(&n.k, n.c.Agreements), groups.New(&n.k, n.c.Groups)
	n.k.Order, n.tables = n.groups.Order, tables.New(&n.k, n.c.Tables, tableLimits)
	if err := n.start(ctx); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// findSelf finds the node among the members, and notes for its services who all are.
func (n *Node) findSelf() error {
	i := n.c.self()
	if i < 0 {
		return fmt.Errorf("cluster: %q is none of the %d members", n.c.Name, len(n.c.Members))
	}
	n.k.Self, n.k.M, n.k.Log, n.k.Compact = parley.ID(i), n.c.M, n.c.Log, compactEvery
	n.k.Round, n.k.Clock, n.k.Signs = n.c.Round, n.c.Clock, n.c.SignerKey != nil
	n.k.Peers = func() []link.PeerStats { return n.mesh.Stats().Peers }
	n.k.Drift = func() float64 { return n.clock.Rate() }
	if n.c.Lab != nil {
		n.k.Lies = &n.c.Lab.Traitor
	}
	n.k.Up, n.k.Watched = n.links.connected, n.watched
	n.k.Admitted = func() parley.Set {
		up, _ := n.others()
		return up
	}
	for _, m := range n.c.Members {
		n.k.Members = append(n.k.Members, m.Name)
	}
	return nil
}

// self is the place of this node among the members, -1 if it has none.
func (c Config) self() int {
	return slices.IndexFunc(c.Members, func(m Member) bool { return m.Name == c.Name })
}

func (n *Node) start(ctx context.Context) (err error) {
	if n.c.Dir != "" {
		if err := n.marked(); err != nil {
			return err
		}
	}
	incarnation, err := n.begin()
	if err != nil {
		return err
	}
	n.k.Views = n.c.views()
	n.k.Rejoin, n.k.Intact = n.c.Rejoin, !n.c.Rejoin && (n.c.Dir == "" || incarnation < rejoined)
	n.admin.life, n.admin.started = incarnation, time.Now()
	n.admin.moved, n.admin.views = make(chan struct{}), make(map[string]*view)
	if n.mesh, err = n.newLinks(incarnation); err != nil {
		return err
	}
	n.tracer.life, n.tracer.recorder = incarnation, host.NewRecorder(host.RecorderSize)
	hosting := host.Config{
		Self: n.k.Self, N: len(n.c.Members), Transport: n.mesh, Store: n.k.Store, Log: n.c.Log, Broken: n.broken,
		Clock: n.c.Clock, Signer: signer{n}, Absent: n.agree.Absent, Header: n.header, Recorder: n.tracer.recorder,
		Punctual: n.c.Network == nil, Life: incarnation,
	}
	if n.c.Trace != nil {
		hosting.Trace = n.trace
	}
	n.k.Host = host.New(hosting)
	n.waits.Store(n.k.Host)
	if err := n.openExpulsions(); err != nil {
		return err
	}
	n.k.Host.Expect(kernel.ClockChannel)
	for i := range n.c.Groups {
		n.k.Host.Expect(kernel.FirstGroup + uint32(i))
	}
	for i := range n.c.Tables {
		n.k.Host.Expect(kernel.FirstTable + uint32(i))
	}
	n.k.Host.Expect(kernel.CommitChannel)
	n.k.Host.Expect(kernel.OrderChannel)
	if err := n.mesh.Start(); err != nil {
		return err
	}
	n.stood.end, n.stood.done = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(n.stood.done)
		n.stand()
	}()
	if err := n.gather(ctx); err != nil {
		return err
	}
	if n.clock, err = clocks.Open(&n.k, n.c.Clocks); err != nil {
		return err
	}
	if err := n.groups.Open(); err != nil {
		return err
	}
	if err := n.tables.Open(); err != nil {
		return err
	}
	n.agree.Reopen()
	if n.commits, err = commits.Open(&n.k, n.c.Commit, n.c.Participant); err != nil {
		return err
	}
	return n.begun()
}

// compactEvery is after how many records a state replaces its log, and tableLimits are the limits of tables. A test
// does not fill as much.
var (
	compactEvery = 4096
	tableLimits  = tables.DefaultLimits
)

// Table returns this node's copy of a state machine. One of a name that is not configured fails
// with ErrNotConfigured whatever it is asked.
func (n *Node) Table(name string) *Table { return n.tables.Table(name) }

// Group returns this node's member of a group. One of a name that is not configured fails with
// ErrNotConfigured whatever it is asked.
func (n *Node) Group(name string) *Group { return n.groups.Group(name) }

// Commit carries out a transaction at all members that are named, each with what it is to
// do, or at none of them: it commits if all of them say yes. It returns when the outcome is
// decided and durable; participants are told at the same time, and those that are down when
// they are back. Who asks again under the name gets the outcome of before, as long as a node
// that takes part remembers it, and joins those who wait if there is none yet. Ask again at a node that takes part:
// another one asks those anew, and what it says may be that this is aborted if one of them does not
// answer in time, and ErrTaken with kernel.ErrUnknown while there is no outcome.
//
// An error that is kernel.ErrUnknown, as when the context ends or the node is blocked, says that
// the transaction goes on and may commit: see Outcome. With any other one nothing is done.
func (n *Node) Commit(ctx context.Context, tx string, bodies map[string][]byte) (committed bool, err error) {
	return n.commits.Commit(ctx, tx, bodies)
}

// Outcome tells what this node knows of a transaction. A *BlockedError comes with the
// outcome Pending of one that is blocked.
func (n *Node) Outcome(tx string) (Outcome, error) { return n.commits.Outcome(tx) }

// Agree has all correct nodes agree on a value, which is the one given if this node is
// correct and no more than M lie. It returns when this node has decided. If the context
// ends before, the agreement goes on, and may come to an end: the error is ErrUnknown then, and
// the context's. If it ends before the agreement has begun, it is ErrRefused.
//
// Before the first agreement of a source, an algorithm and an m the others are asked whether they
// are prepared: that takes two rounds if one is silent, and some ten if more than M are.
//
// A node that has come back waits until it takes part again: for some three times as long as
// an agreement lasts with silent nodes, and thrice as long if all have come back at once. One
// that was cut off for long does, too.
//
// It fails without having begun if messages to the others are too slow for the length of
// a round, with a *RoundError.
func (n *Node) Agree(ctx context.Context, q Question) (Decision, error) { return n.agree.Agree(ctx, q) }

// Propose is interactive consistency: all correct nodes that ask under one name get the
// same vector, in which the value of every correct node that was in time with it stands
// for that node; unless what that node asks for at a time is more than one value has room
// for, and then it takes turns.
//
// An agreement begins when m+1 nodes have asked for it and waited, each its own time to
// gather: then one of them is correct, and liars alone cannot use up a name. In time is
// who asks, less one message delay, before the first correct node has waited. Who asks
// later gets the vector without its value, as long as it is remembered: that is for 1024
// more names of the same algorithm and m, unless more than n-m-1 end at once: who comes back learns
// the names from the others, and not the values, so that it gets ErrAbstained for those that
// were agreed on without it.
//
// If the context ends before, this node takes its value back; it may be in the vector all
// the same: the error is ErrUnknown then, and to ask again under the name tells. Fewer than
// m+1 nodes that ask wait until their contexts end.
func (n *Node) Propose(ctx context.Context, p Proposal) (Vector, error) {
	return n.agree.Propose(ctx, p)
}

// Consensus is Propose and then a rule of the vector: [consensus.Majority] if it has no
// function, or one of the others, or the caller's own. In the vector otherwise stands for
// a node that had handed in nothing. Rule and otherwise must be alike at all nodes.
func (n *Node) Consensus(ctx context.Context, p Proposal, rule consensus.Rule, otherwise []byte,
) ([]byte, Vector, error) {
	return n.agree.Consensus(ctx, p, rule, otherwise)
}

// Decisions has a function called for every decision of this node, whoever asked, until
// stop: as they fall, which need not be in the order of slots. Those on no value are left
// out. The function is
// called within a step of the node: it must not block, nor ask for an agreement.
func (n *Node) Decisions(each func(Decision)) (stop func()) { return n.agree.Decisions(each) }

// Clock tells the cluster's time.
func (n *Node) Clock() Reading { return n.clock.Now() }

// Close leaves without a word: for the others the node has crashed. To close it again does
// nothing. If the disk has failed Close returns within a second, with the failure; where the disk did
// not answer, that names the goroutine which is left in the kernel.
func (n *Node) Close() error {
	n.admin.once.Do(func() { n.admin.err = n.end() })
	return n.admin.err
}

func (n *Node) end() error {
	n.k.Became(Left)
	var errs []error
	if n.mesh != nil {
		errs = append(errs, n.mesh.Close())
	}
	if n.stood.end != nil {
		close(n.stood.end)
		<-n.stood.done
	}
	if n.clock != nil {
		n.clock.Close()
	}
	if n.k.Host != nil {
		n.k.Host.Close()
	}
	n.failAll(n.k.Closed())
	if n.commits != nil {
		n.commits.Close(n.k.Closed())
	}
	n.closeTraces()
	if n.lives != nil {
		_ = n.lives.keep() // a disk that has failed is told of by its store
	}
	if n.k.Store != nil {
		errs = append(errs, n.k.Store.Close())
	}
	return errors.Join(errs...)
}
