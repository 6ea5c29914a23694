package cluster_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/cluster"
	"parley/cluster/store"
)

// A node that has lost its folder is also refused by nodes that restarted since: if one of them took it for a new
// member, the two could begin without what it and the third had acknowledged.
func TestLostFolderAfterRestarts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 3, withTable(true))
		ctx := soon(t, 30*time.Second)
		r.put(ctx, 0, "k", "before")
		r.stop(1)
		r.put(ctx, 0, "k", "acknowledged") // by the first and the last node
		r.stop(0)
		r.lose(2)
		r.configs[2].Rejoin = false
		var lost sync.WaitGroup
		lost.Go(func() {
			if _, err := cluster.Join(ctx, r.configs[2]); !errors.Is(err, cluster.ErrStaleIncarnation) {
				t.Errorf("it joins: %v", err)
			}
		})
		r.start(1)
		lost.Wait()
		if value, _, err := r.table(1).KeyValue().Get(soon(t, time.Second), []byte("k")); err == nil {
			t.Errorf("without what it acknowledged: %q", value)
		}
	})
}

// A folder whose book of incarnations cannot be read does not count as new.
func TestLivesUnreadable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := configured(t, 1, func(_ int, c *cluster.Config) { onDisk(c, true) })
		s, err := store.Open("/node1/records", store.Options{Disk: r.disk(0)})
		must(t, err)
		b, _, _, err := s.Open("node")
		must(t, err)
		b.Replace([]byte("own 1O\n"))
		must(t, s.Close())
		if node, err := cluster.Join(t.Context(), r.configs[0]); err == nil {
			t.Error("it starts", node.Close())
		} else if !strings.Contains(err.Error(), "own 1O") {
			t.Error(err)
		}
	})
}

// Neither does one from which only the records are lost: the others would believe that the node still has them.
func TestRecordsLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 1, withTable(true))
		r.stop(0)
		names, err := r.disk(0).List("/node1/records")
		must(t, err)
		for _, name := range names {
			must(t, r.disk(0).Remove("/node1/records/"+name))
		}
		for _, locked := range []bool{false, true} {
			if locked { // it says nothing about earlier contents
				lock, err := r.disk(0).Create("/node1/records/" + store.LockName)
				must(t, err)
				must(t, lock.Close())
			}
			if node, err := cluster.Join(t.Context(), r.configs[0]); err == nil {
				t.Error("it starts", node.Close())
			} else if !strings.Contains(err.Error(), "--rejoin") {
				t.Error(err)
			}
		}
	})
}

// A node keeps its table in a folder of the file system, takes over the lock of a killed process, and does not
// start when its records are gone.
func TestFolderOfTheSystem(t *testing.T) {
	bubble(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, 1, func(c *cluster.Config) {
			c.Dir, c.Durable, c.Tables = dir, true, []cluster.TableConfig{{Name: "t"}}
		})
		ctx := soon(t, 30*time.Second)
		r.put(ctx, 0, "k", "kept")
		r.stop(0)
		records := filepath.Join(dir, "records")
		must(t, os.WriteFile(filepath.Join(records, store.LockName), nil, 0o600))
		r.start(0)
		if value, _, err := r.table(0).KeyValue().Get(ctx, []byte("k")); string(value) != "kept" {
			t.Errorf("%q, %v", value, err)
		}
		r.stop(0)
		must(t, os.RemoveAll(records))
		if node, err := cluster.Join(t.Context(), r.configs[0]); err == nil {
			t.Error("it starts", node.Close())
		} else if !strings.Contains(err.Error(), "--rejoin") {
			t.Error(err)
		}
	})
}

// A failed node without a Broken function is closed.
func TestBrokenIsClosed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 1, func(c *cluster.Config) { c.Groups = []cluster.GroupConfig{{Name: "g"}} })
		node := r.nodes[0].Load()
		cluster.Break(node, errors.New("broken"))
		eventually(t, "it is closed", func() bool { return node.Status().State == cluster.Left })
		if _, err := node.Group("g").Broadcast(t.Context(), nil); !errors.Is(err, cluster.ErrClosed) {
			t.Error(err)
		}
	})
}

// A broadcast is on disk when it returns, and it returns the position of its delivery.
func TestBroadcastIsDurable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 1, func(c *cluster.Config) {
			onDisk(c, true)
			c.Groups = []cluster.GroupConfig{{Name: "g"}}
		})
		for k := range byte(20) {
			g := r.nodes[0].Load().Group("g")
			position, err := g.Broadcast(t.Context(), []byte{k})
			must(t, err)
			if s := r.nodes[0].Load().Status().Store; s.Durable == 0 {
				t.Fatal("nothing is on the disk")
			}
			s, err := g.Subscribe(position)
			must(t, err)
			if d := read(t, s, 1)[0]; d.Position != position || d.Payload[0] != k {
				t.Fatalf("%v at %d, and not at %d", d.Payload, d.Position, position)
			}
		}
	})
}
