// Package cluster joins real processes into a cluster whose nodes agree. The nodes communicate by mutual TLS and
// keep durable state on disk. They run the same protocol machines as the simulator and the explorer.
//
// A process calls [Join] with its own certificate and the configuration that all nodes share. It can then
// broadcast in groups, run commands on replicated tables, agree on values, and commit transactions:
//
//	node, err := cluster.Join(ctx, cluster.Config{
//		Name: "till", Members: members, Self: self, Trust: trust,
//		Groups: []cluster.GroupConfig{{Name: "news", Level: cluster.Causal}},
//	}) // handle err
//	defer node.Close()
//	position, err := node.Group("news").Broadcast(ctx, []byte("open"))
//	news, err := node.Group("news").Subscribe(1) // from the first delivery
//	defer news.Close()
//	d, err := news.Next(ctx)
//	fmt.Printf("%s: %s", members[d.From].Name, d.Payload)
//
// Many types here are aliases. To read about their methods, run go doc on ./cluster/groups (Group, Subscription)
// and on ./cluster/tables (Table, Session, KeyValue). For levels and links see [Total] and [Streams].
//
// # Decisions
//
// This package starts the services of a node, but implements none of them. Each service (agree, clocks, commits,
// groups, tables) is a package that uses its node through package kernel, and imports no other service. The public
// names of the services are aliases in this package. Motive: you can read a service without the rest of a node, and
// test a service with a small kernel, without TLS and disks. Cost: each public name is declared twice. Types that two
// services share, such as levels and the status of slots, are in kernel.
//
// Tests run real nodes in virtual time, with their TLS, timers, and disks. A test runs them in a bubble of
// testing/synctest, and sets Config.Network to a network of cluster/link/memory. The test can cut, delay, and stall
// any connection. Motive: a test that waits for real time fails on a busy computer, or checks less than the promises.
// Cost: with such a network, a node does not use its precise alarms. It also does not use the clock that advances
// while the computer is suspended. The alarms and this clock have separate tests.
package cluster

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"parley"
	"parley/cluster/agree"
	"parley/cluster/cert"
	"parley/cluster/clocks"
	"parley/cluster/commits"
	"parley/cluster/groups"
	"parley/cluster/host"
	"parley/cluster/kernel"
	"parley/cluster/link"
	"parley/cluster/lives"
	"parley/cluster/members"
	"parley/cluster/mesh"
	"parley/cluster/store"
	"parley/cluster/tables"
	"parley/cluster/traces"
	"parley/internal/lists"
	"parley/trace"
)

// Node is this process's node in the cluster. Its methods are safe for concurrent use.
type Node struct {
	c         Config
	k         kernel.Kernel
	started   time.Time
	mesh      *mesh.Mesh
	lives     *lives.Book
	admission admission
	tracer    *traces.Tracer

	agree   *agree.Service
	clock   *clocks.Service
	commits *commits.Service
	groups  *groups.Service
	members *members.Service
	tables  *tables.Service

	stop   context.CancelFunc // closes Kernel.Ended: the node is closed or has failed
	closes sync.Once
	failed error // result of Close
}

// Join starts the node. It returns when the node is connected to all others, or when a time limit for the connections
// has passed. The end of ctx ends only the call of Join, and not a node that has started.
func Join(ctx context.Context, c Config) (*Node, error) {
	c = c.filled()
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Clock == nil && c.Network == nil {
		c.Clock = host.NewSystem()
	} else if c.Clock == nil {
		c.Clock = host.NewElapsed()
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	n := &Node{c: c}
	n.prepare()
	if err := n.start(ctx); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// prepare sets up the kernel and the services. It opens none of them.
func (n *Node) prepare() {
	c := &n.c
	n.k = kernel.Kernel{
		Cluster: c.Trust.Cluster(), Self: parley.ID(c.self()), M: c.M, Round: c.Round, Clock: c.Clock,
		Signs: c.SignerKey != nil, Log: c.Log, Compact: c.hooks.Compact, Drift: func() float64 { return n.clock.Rate() },
		Members: lists.Of(c.Members, func(m Member) string { return m.Name }),
	}
	if c.FaultInjection != nil {
		n.k.Lies = &c.FaultInjection.Traitor
	}
	var ended context.Context
	ended, n.stop = context.WithCancel(context.Background())
	n.k.Ended = ended.Done()
	n.agree, n.groups = agree.New(&n.k, c.Agreements), groups.New(&n.k, c.Groups)
	n.k.Order, n.tables = n.groups.Order, tables.New(&n.k, c.Tables, c.hooks.Tables)
}

func (n *Node) start(ctx context.Context) (err error) {
	var durable atomic.Pointer[host.Host] // which the store reports to; nil until it exists
	n.k.Store, err = n.c.folder().open(store.Options{
		Failed: n.broken, Log: n.c.Log, Disk: n.c.Disk, LogSize: n.c.hooks.LogSize,
		Durable: func(upto uint64) {
			if h := durable.Load(); h != nil {
				h.Durable(upto)
			}
		},
	})
	if err != nil {
		return err
	}
	if n.lives, n.k.Again, err = n.c.life(n.k.Store); err != nil {
		return err
	}
	n.started = time.Now()
	n.c.Rejoin = n.c.Rejoin && !n.k.Again
	n.k.Life, n.k.Views, n.k.Rejoin = n.lives.Own(), n.c.views(), n.c.Rejoin
	n.k.Intact = !n.c.Rejoin && (n.c.Dir == "" || n.k.Life < lives.Rejoined)
	if err := n.link(); err != nil {
		return err
	}
	n.host()
	durable.Store(n.k.Host)
	n.members, err = members.Open(&n.k, func(all bool) {
		n.groups.Expel(all)
		n.tables.Expel(all)
	})
	if err != nil {
		return err
	}
	n.k.Watched = n.members.Watch
	if err := n.mesh.Start(); err != nil {
		return err
	}
	n.admission.begin()
	if err := n.admission.gather(ctx, n.c.Times.WithDefaults().Suspect); err != nil {
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
	n.k.Work.Begin()
	return n.k.Broken()
}

// link creates the node's links.
func (n *Node) link() (err error) {
	c := mesh.Config{
		Links: n.c.Links, Listener: n.c.Listen, Network: n.c.Network, Self: n.c.Self, Trust: n.c.Trust,
		Digest: n.c.digest(), Handler: frameHandler{n}, Hooks: n.c.hooks.Hooks,
		Addresses: lists.Of(n.c.Members, func(m Member) string { return m.Address }),
		Judge: func(id parley.ID, h link.Hello, leaf *x509.Certificate) *link.Down {
			return n.lives.Judge(n.k.Name(id), h, cert.Serial(leaf), lives.Latest(n.c.Durable))
		},
	}
	if n.mesh, err = mesh.New(&n.k, c); err != nil {
		return err
	}
	n.k.Up = n.mesh.Up
	n.k.Peers = func() []link.PeerStats { return n.mesh.Stats().Peers }
	n.k.Admitted = func() parley.Set {
		up, _ := n.mesh.Others()
		return up
	}
	n.admission = admission{k: &n.k, mesh: n.mesh, lives: n.lives, refused: n.broken, parted: make(chan struct{}, 1)}
	return nil
}

// host creates the host of the node's machines, and makes it keep messages for machines that are opened later.
func (n *Node) host() {
	n.tracer = traces.New(n.c.Trace, n.c.hooks.Recorder, n.c.Log)
	sign := mesh.Signer{
		Cluster: n.k.Cluster, Key: n.c.SignerKey,
		Members: lists.Of(n.c.Members, func(m Member) ed25519.PublicKey { return m.Signer }),
	}
	hosting := host.Config{
		Self: n.k.Self, N: len(n.c.Members), Transport: n.mesh, Store: n.k.Store, Log: n.c.Log, Broken: n.broken,
		Clock: n.c.Clock, Signer: sign, Absent: n.agree.Absent, Recorder: n.tracer.Recorder,
		Punctual: n.c.Network == nil, Life: n.k.Life,
		Header: func(o host.Options, now parley.Tick) trace.Header { return header(&n.k, n.groups, n.agree, o, now) },
	}
	if n.c.Trace != nil {
		hosting.Trace = n.tracer.Begin
	}
	n.k.Host = host.New(hosting)
	for _, channel := range []uint32{kernel.ClockChannel, kernel.CommitChannel, kernel.OrderChannel} {
		n.k.Host.Expect(channel)
	}
	for i := range n.c.Groups {
		n.k.Host.Expect(kernel.FirstGroup + uint32(i))
	}
	for i := range n.c.Tables {
		n.k.Host.Expect(kernel.FirstTable + uint32(i))
		n.k.Host.Expect(kernel.FirstTableOrder + uint32(i))
	}
}

// broken fails the node because its disk failed or a machine panicked.
func (n *Node) broken(err error) {
	n.k.Log.Error("node failed; shutting down", "err", err)
	n.k.Break(fmt.Errorf("%w: %w", ErrClosed, err))
	running := n.k.Work.Go(func() { n.fail(n.k.Closed()) })
	if n.c.Dir != "" && n.tracer != nil {
		f := n.c.folder()
		f.limit = diskPatience
		if file, err := f.dump(n.tracer); err != nil {
			n.k.Log.Error("last events cannot be written", "err", err)
		} else {
			n.k.Log.Info("last events are written", "file", file)
		}
	}
	if n.c.Broken != nil {
		n.c.Broken(err)
	} else if running {
		go func() { _ = n.Close() }()
	}
}

// fail answers all waiting requests with an error and refuses new ones.
func (n *Node) fail(why error) {
	n.stop()
	n.groups.Close(why)
	n.tables.Close(why)
	if n.commits != nil {
		n.commits.Fail(why)
	}
}

// Leave leaves all groups and tables, and then closes the node. The others continue at once, because they need not
// suspect the node first. In services without views (Byzantine groups and agreements) the node counts as silent from
// then on. It can rejoin by Join. To stop a node without leaving, use Close.
//
// A majority of all nodes must stay. If fewer would stay, Leave does nothing and fails with ErrRefused. If ctx ends
// before the node has left, or if other nodes leave at the same time and too few stay, Leave still closes the node.
// The error then names the groups and tables of which the node was still a member.
func (n *Node) Leave(ctx context.Context) error {
	if err := n.members.MayLeave(); err != nil {
		return err
	}
	n.k.Became(Leaving)
	err := n.members.Leave(ctx)
	n.k.Became(Left)
	return errors.Join(err, n.Close())
}

// Drain refuses new requests, waits for the requests in flight, and then leaves. It fails with ErrRefused in
// the same cases as Leave. If ctx ends first, the node leaves anyway, within the time that a leave may take,
// and the error says so.
func (n *Node) Drain(ctx context.Context) error {
	if err := n.members.MayLeave(); err != nil {
		return err
	}
	n.k.Became(Draining)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for n.groups.Busy() || n.tables.Busy() || n.agree.Busy() || n.commits.Busy() {
		select {
		case <-tick.C:
			continue
		case <-ctx.Done():
		}
		t := n.c.Times.WithDefaults()
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.Suspect+t.Flush+2*t.Retry)
		err := n.Leave(short)
		cancel()
		return errors.Join(fmt.Errorf("cluster: some requests in flight did not finish: %w", context.Cause(ctx)), err)
	}
	return n.Leave(ctx)
}

// Close stops the node without leaving. For the others the node has crashed. Further calls do nothing and
// return the same error. If the disk has failed, Close returns the failure within 1 s. If the disk did not
// answer, the error names the goroutine that is still blocked in the operating system.
func (n *Node) Close() error {
	n.closes.Do(func() { n.failed = n.end() })
	return n.failed
}

func (n *Node) end() error {
	n.k.Became(Left)
	n.k.Work.End()
	var errs []error
	if n.mesh != nil {
		errs = append(errs, n.mesh.Close())
	}
	n.admission.close()
	if n.clock != nil {
		n.clock.Close()
	}
	if n.k.Host != nil {
		n.k.Host.Close()
	}
	n.k.Work.Wait()
	n.fail(n.k.Closed())
	if n.commits != nil {
		n.commits.Close(n.k.Closed())
	}
	if n.tracer != nil {
		limit := n.c.DiskLimit
		if n.k.Broken() != nil {
			limit = diskPatience
		}
		_, err := diskAnswers(limit, "end the traces", func() (none struct{}, err error) {
			n.tracer.Close()
			return none, nil
		})
		if err != nil { // the traces are on a disk that does not answer, and stay incomplete
			n.k.Log.Warn("traces are incomplete", "err", err)
		}
	}
	if n.lives != nil {
		_ = n.lives.Keep() // the store reports a failed disk
	}
	if n.k.Store != nil {
		errs = append(errs, n.k.Store.Close())
	}
	return errors.Join(errs...)
}
