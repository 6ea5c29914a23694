// Package cluster joins real processes into a cluster that agrees: over mutual TLS, with
// what must outlive a crash on the disk. It runs the machines that the simulator and the
// explorer run.
//
// A process calls [Join] with the configuration that all nodes have alike and its own
// certificate, and has groups to broadcast in.
//
// # Decisions
//
// A node opens services, and is none. Each service (agree, clocks, commits, groups, tables) is a package that
// knows of its node what package kernel says, and imports no other service: the law of imports holds it to
// that. Their public names are aliases here. Motive: a service can be read without the rest of a node, and
// tested on a kernel of a few lines, without TLS and disks. Cost: what two services share, as levels and the
// state of slots, stands in kernel; and a public name stands in two places.
//
// Nodes run in virtual time. cluster.Config.Network carries what nodes send; on cluster/link/memory, in
// a bubble of testing/synctest, real nodes with their TLS, timers and disks go by the bubble's time, and
// a test cuts, delays and stalls what it likes. Motive: a test that waits for real time fails on a busy
// machine, or demands less than is promised. Cost: a node on a network of its own has neither the
// system's clock of suspensions nor its punctual alarms: those are tested by themselves.
package cluster

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/agreement/consensus"
	"parley/cluster/agree"
	"parley/cluster/clocks"
	"parley/cluster/commits"
	"parley/cluster/groups"
	"parley/cluster/host"
	"parley/cluster/kernel"
	"parley/cluster/link"
	"parley/cluster/lives"
	"parley/cluster/members"
	"parley/cluster/mesh"
	"parley/cluster/tables"
	"parley/cluster/traces"
)

// Node is this process's part of the cluster.
type Node struct {
	c      Config
	k      kernel.Kernel
	mesh   *mesh.Mesh
	lives  *lives.Book
	stood  stood
	waits  atomic.Pointer[host.Host] // for the disk
	groups *groups.Service
	tables *tables.Service

	commits *commits.Service
	members *members.Service
	admin   admin
	agree   *agree.Service
	ended   chan struct{} // closed when the node is, or can not go on
	once    sync.Once     // of it
	tracer  *traces.Tracer
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
	n.k.Drift = func() float64 { return n.clock.Rate() }
	if n.c.Lab != nil {
		n.k.Lies = &n.c.Lab.Traitor
	}
	for _, m := range n.c.Members {
		n.k.Members = append(n.k.Members, m.Name)
	}
	return nil
}

// checkSigner tells what is wrong with the node's key to sign with.
func (n *Node) checkSigner() error {
	switch key := n.c.SignerKey; {
	case key == nil:
		return nil
	case len(key) != ed25519.PrivateKeySize:
		return errors.New("cluster: the key to sign with is none")
	case !key.Public().(ed25519.PublicKey).Equal(n.c.Members[n.k.Self].Signer):
		return errors.New("cluster: the key to sign with is not the one that the members know of this node")
	}
	return nil
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
	n.k.Rejoin, n.k.Intact = n.c.Rejoin, !n.c.Rejoin && (n.c.Dir == "" || incarnation < lives.Rejoined)
	n.admin.life, n.admin.started = incarnation, time.Now()
	if err := n.link(); err != nil {
		return err
	}
	n.host()
	n.waits.Store(n.k.Host)
	n.members, err = members.Open(&n.k, func(all bool) {
		n.groups.Expel(all)
		n.tables.Expel()
	})
	if err != nil {
		return err
	}
	n.k.Watched = n.members.Watch
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

// host makes the host of the node's machines.
func (n *Node) host() {
	n.tracer = traces.New(n.c.Trace, n.c.Log)
	sign := mesh.Signer{Cluster: n.c.Trust.Cluster(), Key: n.c.SignerKey}
	for _, m := range n.c.Members {
		sign.Members = append(sign.Members, m.Signer)
	}
	hosting := host.Config{
		Self: n.k.Self, N: len(n.c.Members), Transport: n.mesh, Store: n.k.Store, Log: n.c.Log, Broken: n.broken,
		Clock: n.c.Clock, Signer: sign, Absent: n.agree.Absent, Header: n.header, Recorder: n.tracer.Recorder,
		Punctual: n.c.Network == nil, Life: n.admin.life,
	}
	if n.c.Trace != nil {
		hosting.Trace = n.tracer.Begin
	}
	n.k.Host = host.New(hosting)
}

// link makes the node's links.
func (n *Node) link() error {
	c := mesh.Config{
		Links: n.c.Links, Listener: n.c.Listen, Network: n.c.Network, Self: n.c.Self, Trust: n.c.Trust,
		Life: n.admin.life, Digest: n.c.digest(), Judge: n.judge, Handler: carrier{n}, Hooks: n.c.hooks.Hooks,
	}
	for _, m := range n.c.Members {
		c.Addresses = append(c.Addresses, m.Address)
	}
	m, err := mesh.New(&n.k, c)
	if err != nil {
		return err
	}
	n.mesh, n.k.Up = m, m.Up
	n.k.Peers = func() []link.PeerStats { return m.Stats().Peers }
	n.k.Admitted = func() parley.Set {
		up, _ := m.Others()
		return up
	}
	return nil
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
// they are back. A caller that asks again under the name gets the same outcome, as long as a node
// that takes part remembers it, and joins those who wait if there is none yet. Ask again at a node that takes part:
// another one asks those anew, and what it says may be that this is aborted if one of them does not
// answer in time, and ErrTaken with ErrUnknown while there is no outcome.
//
// An error that is ErrUnknown, as when the context ends or the node is blocked, says that
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
func (n *Node) Decisions(each func(Decision)) (stop Stop) { return n.agree.Decisions(each) }

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
	n.admin.mu.Lock()
	n.admin.ending = true
	n.admin.mu.Unlock()
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
	if n.members != nil {
		n.members.Close()
	}
	n.failAll(n.k.Closed())
	if n.commits != nil {
		n.commits.Close(n.k.Closed())
	}
	n.admin.work.Wait()
	n.closeTraces()
	if n.lives != nil {
		_ = n.lives.Keep() // a disk that has failed is told of by its store
	}
	if n.k.Store != nil {
		errs = append(errs, n.k.Store.Close())
	}
	return errors.Join(errs...)
}
