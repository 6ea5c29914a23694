package cluster_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/cluster"
	"parley/replica/keyvalue"
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

// A node that lost its disk delivers again what the others keep. If that is not everything, it fetches the state that
// m+1 others report. Meanwhile it answers nothing. Afterwards it has the same state, also after another restart.
func TestByzantineTableLostDisk(t *testing.T) {
	each(t, func(t *testing.T, puts int) {
		r := newRig(t, 4, withByzantine)
		ctx := soon(t, 5*time.Minute)
		value := strings.Repeat("x", keyvalue.MaxValue)
		r.put(ctx, 0, "a", "1")
		for i := range puts {
			r.put(ctx, i%4, fmt.Sprint("key", i%10), value)
		}
		r.lose(3)
		r.put(ctx, 1, "b", "2")
		r.start(3)
		eventually(t, "it serves again", func() bool {
			got, err := r.get(ctx, 3, "b")
			if err != nil && !errors.Is(err, cluster.ErrNotMember) && !errors.Is(err, cluster.ErrUnknown) {
				t.Fatal(err)
			}
			return err == nil && got == "2"
		})
		r.put(ctx, 3, "c", "3")
		r.same(ctx)
		r.restart(3)
		r.stop(0)
		r.put(ctx, 3, "d", "4")
		r.start(0)
		eventually(t, "all serve", func() bool {
			for i := range 4 {
				if got, err := r.get(ctx, i, "d"); err != nil || got != "4" {
					return false
				}
			}
			return true
		})
		r.same(ctx)
		r.restart(all(4)...)
		if got, err := r.get(ctx, 3, "a"); err != nil || got != "1" {
			t.Error(got, err)
		}
		r.same(ctx)
	}, 3, 500)
}
