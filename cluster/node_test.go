package cluster_test

import (
	"encoding/binary"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/cluster"
)

// All members deliver the broadcasts of all members, concurrent and numerous, in one order.
func TestTotalOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
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
					if err := node.Group("g").BroadcastAsync(payload); err != nil {
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

// An invalid configuration, and an unreadable book, are errors of Join.
func TestJoinFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		one := func(g cluster.GroupConfig) func(*cluster.Config) {
			return func(c *cluster.Config) { c.Groups = []cluster.GroupConfig{g} }
		}
		for what, bad := range map[string]struct {
			n      int
			config func(c *cluster.Config)
		}{
			"keep is -1 deliveries":          {1, one(cluster.GroupConfig{Name: "g", Keep: -1})},
			"there is no level 9":            {1, one(cluster.GroupConfig{Name: "g", Level: 9})},
			"two groups are named":           {1, func(c *cluster.Config) { c.Groups = make([]cluster.GroupConfig, 2) }},
			"level byzantine among 1 member": {1, one(cluster.GroupConfig{Name: "g", Level: cluster.Byzantine})},
			"level byzantine among 3 member": {3, one(cluster.GroupConfig{Name: "g", Level: cluster.Byzantine})},
			"m = 5 faulty nodes of 4":        {4, func(c *cluster.Config) { c.M = 5 }},
			"m = -1 faulty nodes of 3":       {3, func(c *cluster.Config) { c.M = -1 }},
			"no certificate (Self)":          {1, func(c *cluster.Config) { c.Self = nil }},
			"trusts no authority (Trust)":    {1, func(c *cluster.Config) { c.Trust = nil }},
		} {
			r := configured(t, bad.n, func(_ int, c *cluster.Config) { bad.config(c) })
			node, err := cluster.Join(t.Context(), r.configs[0])
			if err == nil {
				t.Error(what, "joins", node.Close())
			} else if !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}
