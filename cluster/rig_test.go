package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/cluster"
	"parley/cluster/cert"
	"parley/cluster/disk"
	"parley/cluster/link/memory"
	"parley/replica/keyvalue"
)

// bubble runs a test in virtual time, in parallel with others.
func bubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, test)
}

// each runs a test for each case in a bubble of its own.
func each[C any](t *testing.T, test func(t *testing.T, c C), cases ...C) {
	t.Helper()
	t.Parallel()
	for _, c := range cases {
		t.Run(fmt.Sprint(c), func(t *testing.T) { bubble(t, func(t *testing.T) { test(t, c) }) })
	}
}

// rig is a cluster whose nodes can be stopped and restarted, on a network in memory, or for benchmarks on this
// computer.
type rig struct {
	tb        testing.TB
	network   *memory.Network // nil in benchmarks
	authority *cert.Authority
	issued    []*cert.Issued
	configs   []cluster.Config
	nodes     []atomic.Pointer[cluster.Node]
}

// quick are times for nodes in one process.
var quick = cluster.Times{
	Beat: 20 * time.Millisecond, Suspect: 400 * time.Millisecond, Flush: 100 * time.Millisecond,
	Retry: 200 * time.Millisecond,
}

// configured creates the configurations of n nodes, with separate trust and small logs.
func configured(tb testing.TB, n int, config func(i int, c *cluster.Config)) *rig {
	tb.Helper()
	return configuredOn(tb, memory.New(memory.Options{}), n, config)
}

func configuredOn(tb testing.TB, network *memory.Network, n int, config func(i int, c *cluster.Config)) *rig {
	tb.Helper()
	a, err := cert.NewAuthority("test", 2*time.Hour, nil)
	must(tb, err)
	r := &rig{tb: tb, network: network, authority: a, nodes: make([]atomic.Pointer[cluster.Node], n)}
	var members []cluster.Member
	for i := range n {
		name := fmt.Sprintf("node%d", i+1)
		issued, err := a.IssueNode(name, nil, time.Hour)
		must(tb, err)
		trust, err := cert.NewTrust(a.Anchors(), nil)
		must(tb, err)
		c := cluster.Config{Name: name, Self: issued.Self(), Trust: trust, SignerKey: issued.Signer, Times: quick}
		var address string
		if _, measured := tb.(*testing.B); measured {
			c.Listen, err = new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
			must(tb, err)
			address = c.Listen.Addr().String()
		} else {
			h := network.Host(name)
			c.Network, address = h, h.Addr(7000)
			c.Test().LogSize, c.Test().Recorder = 1<<20, 64<<10
		}
		if testing.Verbose() && os.Getenv("V") != "" {
			c.Log = slog.Default().With("at", name)
		}
		members = append(members, cluster.Member{Name: name, Address: address, Signer: issued.SignerKey()})
		r.issued, r.configs = append(r.issued, issued), append(r.configs, c)
	}
	for i := range r.configs {
		r.configs[i].Members = members
		config(i, &r.configs[i])
	}
	return r
}

// begin starts all nodes, and waits until they are in their first views together.
func (r *rig) begin() *rig {
	r.tb.Helper()
	which := all(len(r.nodes))
	r.tb.Cleanup(func() { r.stop(which...) })
	r.start(which...)
	r.settle()
	return r
}

// newRig starts a cluster of n nodes.
func newRig(tb testing.TB, n int, config func(c *cluster.Config)) *rig {
	tb.Helper()
	return configured(tb, n, func(_ int, c *cluster.Config) { config(c) }).begin()
}

// joined starts a cluster of n nodes with the default times. None of them may fail.
func joined(tb testing.TB, n int, config func(i int, c *cluster.Config)) (nodes []*cluster.Node) {
	tb.Helper()
	r := configured(tb, n, func(i int, c *cluster.Config) {
		c.Times, c.Broken = cluster.Times{}, func(err error) { tb.Error(c.Name, err) }
		config(i, c)
	})
	tb.Cleanup(func() {
		r.stop(all(n)...)
		for _, node := range nodes { // the test may have replaced these
			if err := node.Close(); err != nil {
				tb.Error(err)
			}
		}
	})
	r.start(all(n)...)
	for i := range r.nodes {
		nodes = append(nodes, r.nodes[i].Load())
	}
	return nodes
}

// onDisk gives a node a disk in memory.
func onDisk(c *cluster.Config, durable bool) {
	c.Dir, c.Durable, c.Disk = "/"+c.Name, durable, disk.NewMemory(-1)
}

// withTable gives nodes a table and disks in memory.
func withTable(durable bool) func(c *cluster.Config) {
	return func(c *cluster.Config) {
		onDisk(c, durable)
		c.Tables = []cluster.TableConfig{{Name: "t"}}
	}
}

func all(n int) (out []int) {
	for i := range n {
		out = append(out, i)
	}
	return out
}

// settle waits until all nodes are in their first views together: a node without which the others began is
// admitted a moment later, and until then it refuses requests. A node that stays out is for the test to find.
func (r *rig) settle() {
	out := func(v cluster.ViewStatus) bool { return len(v.Members) != len(r.nodes) }
	waited(5*time.Second, func() bool {
		for i := range r.nodes {
			if node := r.nodes[i].Load(); node != nil && slices.ContainsFunc(views(node), out) {
				return false
			}
		}
		return true
	})
}

// start starts nodes, and fails the test if one does not join.
func (r *rig) start(which ...int) {
	r.tb.Helper()
	if r.join(which...); r.tb.Failed() {
		r.tb.FailNow()
	}
}

func (r *rig) join(which ...int) {
	var starts sync.WaitGroup
	for _, i := range which {
		starts.Go(func() {
			node, err := cluster.Join(context.Background(), r.configs[i])
			if err != nil {
				r.tb.Error(err)
				return
			}
			r.nodes[i].Store(node)
		})
	}
	starts.Wait()
}

func (r *rig) stop(which ...int) {
	var stops sync.WaitGroup
	for _, i := range which {
		stops.Go(func() {
			if node := r.nodes[i].Swap(nil); node != nil {
				if err := node.Close(); err != nil {
					r.tb.Error(err)
				}
			}
		})
	}
	stops.Wait()
}

// host returns the host of a node in the network.
func (r *rig) host(i int) *memory.Host { return r.network.Host(r.configs[i].Name) }

// cut disconnects a node: connections stay open, but nothing passes over them until heal.
func (r *rig) cut(i int)  { r.network.Cut(r.host(i), r.others(i)...) }
func (r *rig) heal(i int) { r.network.Heal(r.host(i), r.others(i)...) }

func (r *rig) others(i int) (out []*memory.Host) {
	for k := range r.configs {
		if k != i {
			out = append(out, r.host(k))
		}
	}
	return out
}

// disk returns the disk of a node, in memory.
func (r *rig) disk(i int) *disk.Memory { return r.configs[i].Disk.(*disk.Memory) }

// lose stops a node, and gives it an empty disk: it must join the others as a new member.
func (r *rig) lose(i int) {
	r.stop(i)
	r.configs[i].Disk, r.configs[i].Rejoin = disk.NewMemory(-1), true
}

// back waits until a node is a member: until then no other node may fail.
func (r *rig) back(i int) {
	ctx, cancel := context.WithTimeout(r.tb.Context(), 10*time.Second)
	defer cancel()
	if _, _, err := r.table(i).KeyValue().Get(ctx, []byte("any")); !errors.Is(err, keyvalue.ErrMissing) {
		r.tb.Errorf("node %d is not back: %v", i, err)
	}
}

// restart stops nodes, starts them again, and waits until each is a member.
func (r *rig) restart(which ...int) {
	r.stop(which...)
	r.start(which...)
	for _, i := range which {
		r.back(i)
	}
}

// table returns the table of a node, nil if the node is down.
func (r *rig) table(i int) *cluster.Table {
	if node := r.nodes[i].Load(); node != nil {
		return node.Table("t")
	}
	return nil
}

// put sets the value of a key at a node.
func (r *rig) put(ctx context.Context, i int, key, value string) {
	r.tb.Helper()
	if _, _, err := r.table(i).Session().Do(ctx, keyvalue.Put([]byte(key), []byte(value))); err != nil {
		r.tb.Fatalf("node %d: %v", i, err)
	}
}

// get reads a key at a node.
func (r *rig) get(ctx context.Context, i int, key string) (value string, err error) {
	b, _, err := r.table(i).Query(ctx, keyvalue.Get([]byte(key)))
	if err != nil {
		return "", err
	}
	a, _ := keyvalue.ReadAnswer(b)
	return string(a.Value), a.Status.Err()
}

// same waits until all replicas are at one position, and requires that they are the same.
func (r *rig) same(ctx context.Context) (position uint64) {
	r.tb.Helper()
	for {
		var positions, hashes []uint64
		for i := range r.nodes {
			p, h, err := r.table(i).Inspect(ctx)
			if err != nil {
				r.tb.Fatal(err)
			}
			positions, hashes = append(positions, p), append(hashes, h)
		}
		one := len(slices.Compact(slices.Clone(positions))) == 1
		switch {
		case one && len(slices.Compact(slices.Clone(hashes))) > 1:
			r.tb.Fatalf("at position %d the states are %x", positions[0], hashes)
		case one:
			return positions[0]
		case ctx.Err() != nil:
			r.tb.Fatalf("in the end the copies are at positions %d", positions)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// waited waits until so returns true, at most d, and reports whether it did.
func waited(d time.Duration, so func() bool) bool {
	for end := time.Now().Add(d); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// within waits until so returns true.
func within(t *testing.T, d time.Duration, what string, so func() bool) {
	t.Helper()
	if !waited(d, so) {
		t.Fatal("not in time: " + what)
	}
}

// eventually waits until f returns true.
func eventually(tb testing.TB, what string, f func() bool) {
	tb.Helper()
	if !waited(30*time.Second, f) {
		tb.Fatalf("not in the end: %s", what)
	}
}

// must fails the test at an error.
func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// soon returns a context that ends after d.
func soon(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// second returns the error of a call whose result does not matter.
func second[T any](_ T, err error) error { return err }

// logged collects the log of nodes.
type logged struct {
	mu   sync.Mutex
	text []byte
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	return len(b), nil
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}

// logger returns a logger that writes to l.
func (l *logged) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }
