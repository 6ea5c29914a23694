package cluster_test

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/cluster"
	"parley/cluster/link/memory"
	"parley/replica/keyvalue"
	"parley/replica/rsm"
)

// bulky is a table of keys and values whose state is longer by more bytes.
type bulky struct {
	*keyvalue.Table
	more int
}

func newBulky(more int) func() rsm.Application {
	return func() rsm.Application { return bulky{keyvalue.New(), more} }
}

func (b bulky) Snapshot() []byte {
	s := b.Table.Snapshot()
	out := make([]byte, 8+len(s)+b.more)
	binary.BigEndian.PutUint64(out, uint64(len(s)))
	copy(out[8:], s)
	return out
}

func (b bulky) Restore(s []byte) bool {
	if len(s) < 8 || binary.BigEndian.Uint64(s) != uint64(len(s)-8-b.more) {
		return false
	}
	return b.Table.Restore(s[8 : len(s)-b.more])
}

// withBulky returns three nodes with disks in memory and a table of size bytes, on links with a latency.
func withBulky(t *testing.T, size int, latency time.Duration) *rig {
	t.Helper()
	return configuredOn(t, memory.New(memory.Options{Latency: latency}), 3, func(_ int, c *cluster.Config) {
		onDisk(c, true)
		c.Times, c.Test().LogSize = cluster.Times{}, int64(size)
		c.Tables = []cluster.TableConfig{{Name: "t", New: newBulky(size)}}
	}).begin()
}

// ready waits until a node reports that it serves the table. It requires that the node then answers at once, and
// that it refuses earlier requests at once.
func (r *rig) ready(i int, key, want string) (took time.Duration) {
	r.tb.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		took = time.Since(began)
		status := r.nodes[i].Load().Status().Tables[0]
		ctx, cancel := context.WithTimeout(r.tb.Context(), 50*time.Millisecond)
		value, err := r.get(ctx, i, key)
		cancel()
		switch {
		case status.Serving && status.In:
			if value != want || err != nil {
				r.tb.Fatalf("node %d is ready after %v and answers %q, %v", i, took, value, err)
			}
			return took
		case err == nil && value != want, err != nil && !errors.Is(err, cluster.ErrNotMember):
			r.tb.Fatalf("node %d is not ready after %v and answers %q, %v", i, took, value, err)
		case took > 30*time.Second:
			r.tb.Fatalf("node %d is not ready after %v", i, took)
		}
	}
}

// A node that lost its disk and joins a table with a long state is ready exactly when it answers. Meanwhile the
// others keep their views, suspect nobody, and answer their clients.
func TestReadyMeansReady(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := withBulky(t, 20<<20, time.Millisecond)
		ctx := soon(t, time.Minute)
		r.put(ctx, 0, "k", "v")
		r.lose(2)
		time.Sleep(3 * time.Second) // the others have excluded it
		before := r.nodes[0].Load().Status().Tables[0].View
		asked, stop := context.WithCancel(ctx)
		var clients sync.WaitGroup
		var longest atomic.Int64
		for i := range 2 {
			clients.Go(func() {
				for s := r.table(i).Session(); asked.Err() == nil; time.Sleep(time.Millisecond) {
					began := time.Now()
					if _, _, err := s.Do(asked, keyvalue.Add([]byte("n"), 1)); err != nil && asked.Err() == nil {
						t.Error(err)
					} else if took := int64(time.Since(began)); asked.Err() == nil && took > longest.Load() {
						longest.Store(took)
					}
				}
			})
			clients.Go(func() {
				for ; asked.Err() == nil; time.Sleep(5 * time.Millisecond) {
					v := r.nodes[i].Load().Status().Tables[0].ViewStatus
					if !v.In || !slices.Contains(v.Members, "node1") || !slices.Contains(v.Members, "node2") ||
						len(v.Suspected) > 0 || v.View > before+1 {
						t.Errorf("node %d is in view %d of %v and suspects %v", i, v.View, v.Members, v.Suspected)
					}
				}
			})
		}
		r.start(2)
		t.Log("ready after", r.ready(2, "k", "v"))
		stop()
		clients.Wait()
		t.Log("the longest answer takes", time.Duration(longest.Load()))
		if d := time.Duration(longest.Load()); d > 50*time.Millisecond {
			t.Errorf("somebody waits for %v", d)
		}
		r.same(ctx)
		// The same holds when it restarts with its disk.
		r.stop(2)
		r.configs[2].Rejoin = false
		r.start(2)
		t.Log("ready again after", r.ready(2, "k", "v"))
	})
}

// Fetched state is on disk before a node is ready: with one other node, whose disk has less, it continues with
// everything acknowledged, although all nodes that sent the state are lost.
func TestFetchedStateIsDurable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := withBulky(t, 4<<20, 10*time.Millisecond)
		ctx := soon(t, time.Minute)
		r.put(ctx, 0, "k", "v")
		r.lose(2)
		r.start(2)
		r.ready(2, "k", "v")
		r.stop(0)
		r.put(ctx, 2, "late", "w")
		left := r.disk(2).Crash(nil)
		r.stop(1, 2)
		r.configs[2].Disk = left
		r.configs[2].Rejoin = false
		r.start(0, 2)
		for _, i := range []int{2, 0} {
			r.ready(i, "k", "v")
			if got, err := r.get(ctx, i, "late"); got != "w" || err != nil {
				t.Errorf("node %d: %q, %v", i, got, err)
			}
		}
	})
}

// A node that has the state ends while another one fetches it, or the fetching node does: it is soon ready
// anyway, with everything acknowledged.
func TestFetchIsCutShort(t *testing.T) {
	each(t, func(t *testing.T, ends int) {
		r := withBulky(t, 8<<20, 10*time.Millisecond)
		ctx := soon(t, time.Minute)
		r.put(ctx, 0, "k", "v")
		r.lose(2)
		r.start(2)
		for { // until it has part of it
			v := r.nodes[2].Load().Status().Tables[0]
			if v.Serving {
				t.Fatal("it has all at once")
			}
			if v.In {
				break
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(100 * time.Millisecond)
		if r.nodes[2].Load().Status().Tables[0].Serving {
			t.Fatal("it has all already")
		}
		left := r.disk(2).Crash(nil)
		r.stop(ends)
		if ends == 2 {
			r.configs[2].Disk = left
			r.configs[2].Rejoin = false
			r.start(2)
		}
		if took := r.ready(2, "k", "v"); ends != 2 && took > time.Second {
			t.Errorf("ready %v after it lost one of two others", took)
		}
		r.put(ctx, 2, "after", "w")
		if ends != 2 {
			r.start(ends)
		}
		for i := range 3 {
			r.ready(i, "after", "w")
		}
		r.same(ctx)
	}, 0, 1, 2)
}

// A node that lost its disk joins durable groups of all six levels, each with 8 MiB of history, over links of 100
// Mbit/s. The others keep their views, and their broadcasts meanwhile are delivered.
func TestJoinWithFullHistories(t *testing.T) {
	levels := []cluster.Level{cluster.Total, cluster.Reliable, cluster.Uniform, cluster.FIFO, cluster.Causal, cluster.Atomic}
	bubble(t, func(t *testing.T) {
		network := memory.New(memory.Options{Latency: time.Millisecond, Window: 12 << 10})
		r := configuredOn(t, network, 3, func(_ int, c *cluster.Config) {
			onDisk(c, true)
			c.Times, c.Test().LogSize = cluster.Times{}, 0
			for _, level := range levels {
				c.Groups = append(c.Groups, cluster.GroupConfig{Name: level.String(), Level: level})
			}
		}).begin()
		ctx := soon(t, 10*time.Minute)
		group := func(i int, level cluster.Level) *cluster.Group { return r.nodes[i].Load().Group(level.String()) }
		payload := make([]byte, 60<<10)
		var filling sync.WaitGroup
		for _, level := range levels {
			filling.Go(func() {
				for range 150 {
					if _, err := group(0, level).Broadcast(ctx, payload); err != nil {
						t.Errorf("%s: %v", level, err)
					}
				}
			})
		}
		filling.Wait()
		r.lose(2)
		time.Sleep(3 * time.Second)
		asked, stop := context.WithCancel(ctx)
		var clients sync.WaitGroup
		var longest atomic.Int64
		for i := range 2 {
			for _, level := range levels {
				clients.Go(func() {
					for ; asked.Err() == nil; time.Sleep(10 * time.Millisecond) {
						began := time.Now()
						if _, err := group(i, level).Broadcast(asked, []byte("x")); err != nil && asked.Err() == nil {
							t.Errorf("%s at node %d: %v", level, i, err)
						} else if took := int64(time.Since(began)); asked.Err() == nil && took > longest.Load() {
							longest.Store(took)
						}
					}
				})
			}
			clients.Go(func() {
				for ; asked.Err() == nil; time.Sleep(5 * time.Millisecond) {
					for k, v := range views(r.nodes[i].Load()) {
						if !v.In || !slices.Contains(v.Members, "node1") || !slices.Contains(v.Members, "node2") ||
							len(v.Suspected) > 0 || v.View > 3 {
							t.Errorf("node %d is in view %d of %v of group %d and suspects %v", i, v.View, v.Members, k, v.Suspected)
						}
					}
				}
			})
		}
		began := time.Now()
		r.start(2)
		for {
			out := func(v cluster.ViewStatus) bool { return !v.In || len(v.Members) < 3 }
			if !slices.ContainsFunc(views(r.nodes[2].Load()), out) {
				break
			}
			if time.Since(began) > time.Minute {
				t.Fatalf("it is not in all groups: %+v", views(r.nodes[2].Load()))
			}
			time.Sleep(time.Millisecond)
		}
		t.Log("a member of all after", time.Since(began))
		time.Sleep(3 * time.Second)
		stop()
		clients.Wait()
		if d := time.Duration(longest.Load()); d > 50*time.Millisecond {
			t.Errorf("a broadcast takes %v", d)
		}
	})
}

// A node without a folder, whose incarnations are numbered by their start time, rejoins as a new member.
func TestJoinsWithoutFolder(t *testing.T) {
	each(t, func(t *testing.T, n int) {
		r := newRig(t, n, func(c *cluster.Config) { c.Tables = []cluster.TableConfig{{Name: "t"}} })
		r.put(soon(t, time.Minute), 0, "k", "v")
		r.stop(2)
		r.configs[2].Rejoin = true
		r.start(2)
		r.ready(2, "k", "v")
	}, 3, 4)
}
