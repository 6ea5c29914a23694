// Package clustertest runs a whole cluster within a test, so that you can test an application. The nodes are real,
// with TLS and timers. But the network and the disks are in memory, and time is the virtual time of
// testing/synctest. A minute of the cluster's time takes much less real time, and the load of the computer does not
// affect the result.
//
//	func TestShop(t *testing.T) {
//		clustertest.Run(t, 3, func(c *cluster.Config) {
//			c.Groups = []cluster.GroupConfig{{Name: "orders", Level: cluster.Total}}
//		}, func(t *testing.T, c *clustertest.Cluster) {
//			shop := newShop(c.Node(0))
//			c.Kill(2)
//			...
//		})
//	}
package clustertest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/cluster"
	"parley/cluster/cert"
	"parley/cluster/disk"
	"parley/cluster/link/memory"
)

// patience is how long Run and Start wait for nodes to be in their views, and Wait for its condition. It is
// virtual time, so it may be long.
const patience = 5 * time.Minute

// Cluster holds the nodes of one test. Its methods count nodes from 0. Only the goroutine of the function
// passed to Run may call them.
type Cluster struct {
	t       *testing.T
	network *memory.Network
	configs []cluster.Config
	nodes   []*cluster.Node
	disks   []*disk.Memory
	chance  *rand.Rand
}

// Run starts n nodes, named node1 and so on, in a bubble of testing/synctest. It waits until they are in their first
// views together, and calls test. The function configure adds the groups, tables, and so on to the configuration of
// each node. Its settings of disks and of the network have no effect. When test returns, Run closes the nodes.
//
// Within the bubble, time passes when all goroutines wait. Goroutines that test starts must end before test returns.
func Run(t *testing.T, n int, configure func(c *cluster.Config), test func(t *testing.T, c *Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &Cluster{t: t, network: memory.New(memory.Options{}), chance: rand.New(rand.NewPCG(1, uint64(n)))}
		c.configure(n, configure)
		t.Cleanup(func() { c.each(c.all(), c.close) })
		c.Start(c.all()...)
		test(t, c)
	})
}

// configure creates the configurations.
func (c *Cluster) configure(n int, more func(c *cluster.Config)) {
	c.t.Helper()
	authority, err := cert.NewAuthority("test", 100*24*time.Hour, nil)
	c.must(err)
	trust, err := cert.NewTrust(authority.Anchors(), nil)
	c.must(err)
	members := make([]cluster.Member, n)
	for i := range n {
		name := fmt.Sprintf("node%d", i+1)
		issued, err := authority.IssueNode(name, nil, 90*24*time.Hour)
		c.must(err)
		config := cluster.Config{Name: name, Self: issued.Self(), Trust: trust, Durable: true}
		more(&config)
		host := c.network.Host(name)
		c.disks = append(c.disks, disk.NewMemory(-1))
		config.Network, config.Listen, config.Dir, config.Disk = host, nil, "/"+name, c.disks[i]
		members[i] = cluster.Member{Name: name, Address: host.Addr(7000), Signer: issued.SignerKey()}
		c.configs = append(c.configs, config)
	}
	for i := range c.configs {
		c.configs[i].Members = members
	}
	c.nodes = make([]*cluster.Node, n)
}

func (c *Cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *Cluster) all() (list []int) {
	for i := range c.configs {
		list = append(list, i)
	}
	return list
}

// each runs do for several nodes concurrently.
func (c *Cluster) each(which []int, do func(i int)) {
	var all sync.WaitGroup
	for _, i := range which {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

// Node returns a node, nil while it is down.
func (c *Cluster) Node(i int) *cluster.Node { return c.nodes[i] }

// Nodes returns all nodes, nil for those that are down.
func (c *Cluster) Nodes() []*cluster.Node { return slices.Clone(c.nodes) }

// Start starts nodes that are down, with their existing disks, and waits until they are members of all their
// groups and tables.
func (c *Cluster) Start(which ...int) {
	c.t.Helper()
	errs := make([]error, len(c.nodes))
	c.each(which, func(i int) {
		if c.nodes[i] == nil {
			c.nodes[i], errs[i] = cluster.Join(context.Background(), c.configs[i])
		}
	})
	for i, err := range errs {
		if err != nil {
			c.t.Fatalf("%s does not start: %v", c.configs[i].Name, err)
		}
	}
	for _, i := range which {
		c.Wait(c.configs[i].Name+" to be a member", func() bool { return in(c.nodes[i]) })
	}
}

// in reports whether a node is a member of all its groups and tables.
func in(node *cluster.Node) bool {
	status := node.Status()
	return !slices.ContainsFunc(status.Groups, func(g cluster.GroupStatus) bool { return !g.In }) &&
		!slices.ContainsFunc(status.Tables, func(t cluster.TableStatus) bool { return !t.In || !t.Serving })
}

// Stop closes nodes. Their disks have their whole state.
func (c *Cluster) Stop(which ...int) { c.each(which, c.close) }

func (c *Cluster) close(i int) {
	if node := c.nodes[i]; node != nil {
		c.nodes[i] = nil
		if err := node.Close(); err != nil {
			c.t.Errorf("%s: %v", c.configs[i].Name, err)
		}
	}
}

// Kill ends nodes as a power failure does. The others receive nothing more from them. The nodes' disks lose a part of
// the data that was written but not synced.
func (c *Cluster) Kill(which ...int) {
	for _, i := range which {
		c.Cut(i)
		c.disks[i] = c.disks[i].Crash(c.chance)
		c.configs[i].Disk = c.disks[i]
	}
	c.each(which, c.close)
	for _, i := range which {
		c.Heal(i)
	}
}

// Lose gives nodes that are down empty disks. They join as new members.
func (c *Cluster) Lose(which ...int) {
	c.t.Helper()
	for _, i := range which {
		if c.nodes[i] != nil {
			c.t.Fatalf("%s is up: kill or stop it before it loses its disk", c.configs[i].Name)
		}
		c.disks[i] = disk.NewMemory(-1)
		c.configs[i].Disk, c.configs[i].Rejoin = c.disks[i], true
	}
}

// Cut disconnects a node from all others. Connections stay open, but nothing passes over them until Heal.
func (c *Cluster) Cut(i int) { c.network.Cut(c.host(i), c.others(i)...) }

// Heal ends a Cut. Messages sent meanwhile arrive.
func (c *Cluster) Heal(i int) { c.network.Heal(c.host(i), c.others(i)...) }

// Delay sets the latency of messages from one node to another.
func (c *Cluster) Delay(from, to int, d time.Duration) {
	c.network.SetLatency(c.host(from), c.host(to), d)
}

func (c *Cluster) host(i int) *memory.Host { return c.network.Host(c.configs[i].Name) }

func (c *Cluster) others(i int) (list []*memory.Host) {
	for k := range c.configs {
		if k != i {
			list = append(list, c.host(k))
		}
	}
	return list
}

// Wait waits until so returns true, and fails the test if that takes more than five minutes of virtual time. The
// argument what describes the condition.
func (c *Cluster) Wait(what string, so func() bool) {
	c.t.Helper()
	for began := time.Now(); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Since(began) > patience {
			c.t.Fatalf("waited %s for %s", patience, what)
		}
	}
}
