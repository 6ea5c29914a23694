package cluster_test

import (
	"testing"
	"time"

	"parley/cluster"
)

// withByzantine gives nodes a table of level byzantine and disks in memory.
func withByzantine(c *cluster.Config) {
	onDisk(c, true)
	c.Tables = []cluster.TableConfig{{Name: "t", Level: cluster.Byzantine}}
}

// A table of level byzantine applies commands at all nodes in one order, and finds its state again after a restart of
// one node, and of all.
func TestByzantineTable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 4, withByzantine)
		ctx := soon(t, time.Minute)
		r.put(ctx, 0, "a", "1")
		r.put(ctx, 1, "b", "2")
		r.same(ctx)
		r.restart(3)
		r.put(ctx, 3, "c", "3")
		r.same(ctx)
		r.restart(all(4)...)
		for i, key := range []string{"a", "b", "c"} {
			if value, err := r.get(ctx, i, key); value != []string{"1", "2", "3"}[i] || err != nil {
				t.Errorf("%s is %q, %v", key, value, err)
			}
		}
		r.same(ctx)
	})
}
