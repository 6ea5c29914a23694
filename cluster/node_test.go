package cluster_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/cluster"
	"parley/cluster/cert"
)

// joined makes a cluster of n nodes in this process.
func joined(tb testing.TB, n int, config func(i int, c *cluster.Config)) []*cluster.Node {
	tb.Helper()
	a, err := cert.NewAuthority("test", 2*time.Hour, nil)
	if err != nil {
		tb.Fatal(err)
	}
	trust, err := cert.NewTrust(a.Anchors(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	configs := make([]cluster.Config, n)
	var members []cluster.Member
	var at places
	for i := range n {
		name := fmt.Sprintf("node%d", i+1)
		issued, err := a.IssueNode(name, nil, time.Hour)
		if err != nil {
			tb.Fatal(err)
		}
		configs[i] = cluster.Config{Name: name, Self: issued.Self(), Trust: trust, SignerKey: issued.Signer}
		address := at.take(tb, &configs[i])
		members = append(members, cluster.Member{Name: name, Address: address, Signer: issued.SignerKey()})
	}
	nodes := make([]*cluster.Node, n)
	var all sync.WaitGroup
	for i := range configs {
		configs[i].Members = members
		config(i, &configs[i])
		if configs[i].Broken == nil {
			configs[i].Broken = func(err error) { tb.Error(configs[i].Name, err) }
		}
		all.Go(func() {
			var err error
			if nodes[i], err = cluster.Join(tb.Context(), configs[i]); err != nil {
				tb.Error(err)
			}
		})
	}
	all.Wait()
	tb.Cleanup(func() {
		for _, node := range nodes {
			if err := node.Close(); err != nil && !errors.Is(err, net.ErrClosed) { // the test has
				tb.Error(err)
			}
		}
	})
	if tb.Failed() {
		tb.FailNow()
	}
	return nodes
}

// All members deliver what all of them broadcast, at once and much of it, in one order.
func TestTotalOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n, each = 3, 20000
		hashes := make([]uint64, n)
		var counts [n]atomic.Int64
		nodes := joined(t, n, func(i int, c *cluster.Config) {
			if os.Getenv("V") != "" {
				c.Log = slog.Default()
			}
			c.Groups = []cluster.GroupConfig{{Name: "g", Deliver: func(d cluster.Delivery) {
				hashes[i] = hashes[i]*1099511628211 ^ uint64(d.From)<<32 ^ uint64(binary.LittleEndian.Uint32(d.Payload))
				counts[i].Add(1)
			}}}
		})
		var senders sync.WaitGroup
		for _, node := range nodes {
			senders.Go(func() {
				for k := range uint32(each) {
					payload := make([]byte, 64)
					binary.LittleEndian.PutUint32(payload, k)
					if err := node.Group("g").Post(payload); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		senders.Wait()
		for i := range counts {
			for end := time.Now().Add(10 * time.Second); counts[i].Load() < n*each && time.Now().Before(end); {
				time.Sleep(time.Millisecond)
			}
			if got := counts[i].Load(); got != n*each {
				t.Fatalf("node %d delivered %d of %d", i, got, n*each)
			}
		}
		for i := range hashes {
			if hashes[i] != hashes[0] {
				t.Errorf("node %d delivered in another order", i)
			}
		}
	})
}

// A configuration that makes no sense, and a book that cannot be read, are errors of Join.
func TestJoinFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		one := func(g cluster.GroupConfig) func(*cluster.Config) {
			return func(c *cluster.Config) { c.Groups = []cluster.GroupConfig{g} }
		}
		for what, bad := range map[string]struct {
			n      int
			config func(c *cluster.Config)
		}{
			"keeping -1 deliveries":          {1, one(cluster.GroupConfig{Name: "g", Keep: -1})},
			"there is no level 9":            {1, one(cluster.GroupConfig{Name: "g", Level: 9})},
			"two groups are named":           {1, func(c *cluster.Config) { c.Groups = make([]cluster.GroupConfig, 2) }},
			"level byzantine among 1 member": {1, one(cluster.GroupConfig{Name: "g", Level: cluster.Byzantine})},
			"level byzantine among 3 member": {3, one(cluster.GroupConfig{Name: "g", Level: cluster.Byzantine})},
			"5 liars among 4 members":        {4, func(c *cluster.Config) { c.M = 5 }},
			"-1 liars among 3 members":       {3, func(c *cluster.Config) { c.M = -1 }},
			"no certificate (Self)":          {1, func(c *cluster.Config) { c.Self = nil }},
			"trusts no authority (Trust)":    {1, func(c *cluster.Config) { c.Trust = nil }},
		} {
			r := new(rig)
			configured(t, r, bad.n, bad.config)
			node, err := cluster.Join(t.Context(), r.configs[0])
			if err == nil {
				t.Error(what, "joins", node.Close())
			} else if !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}
