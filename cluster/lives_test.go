package cluster_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/cluster"
	"parley/cluster/store"
)

// A node that has lost its folder is refused by those who have been started again since, too:
// if one of them took it for a new one, the two could begin without what it and the third had
// acknowledged.
func TestLostFolderAfterRestarts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, withTable(t, true))
		ctx := soon(t, 30*time.Second)
		client := r.table(0).KeyValue()
		put := func(value string) {
			t.Helper()
			if _, err := client.Put(ctx, []byte("k"), []byte(value)); err != nil {
				t.Fatal(err)
			}
		}
		put("before")
		r.stop(1)
		put("acknowledged") // by the first and the last
		r.stop(0, 2)
		if err := os.RemoveAll(r.configs[2].Dir); err != nil {
			t.Fatal(err)
		}
		var lost sync.WaitGroup
		lost.Go(func() {
			node, err := cluster.Join(ctx, r.configs[2])
			if !errors.Is(err, cluster.ErrForgotten) {
				t.Errorf("it joins: %v", err)
			}
			r.nodes[2].Store(node)
		})
		r.start(1)
		lost.Wait()
		if value, _, err := r.table(1).KeyValue().Get(soon(t, time.Second), []byte("k")); err == nil {
			t.Errorf("without what it acknowledged: %q", value)
		}
	})
}

// A folder whose book of incarnations cannot be read is no new one.
func TestLivesUnreadable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := new(rig)
		configured(t, r, 1, withTable(t, true))
		s, err := store.Open(filepath.Join(r.configs[0].Dir, "records"), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		b, _, _, err := s.Open("node")
		if err != nil {
			t.Fatal(err)
		}
		b.Replace([]byte("own 1O\n"))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if node, err := cluster.Join(t.Context(), r.configs[0]); err == nil {
			t.Error("it starts", node.Close())
		} else if !strings.Contains(err.Error(), "own 1O") {
			t.Error(err)
		}
	})
}

// Nor is one from which the records alone are lost: the others would believe that the node
// knows what it knew.
func TestRecordsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, withTable(t, true))
		r.stop(0)
		if err := os.RemoveAll(filepath.Join(r.configs[0].Dir, "records")); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if node, err := cluster.Join(t.Context(), r.configs[0]); err == nil {
				t.Error("it starts", node.Close())
			} else if !strings.Contains(err.Error(), "--rejoin") {
				t.Error(err)
			}
			// The lock tells nothing of what was there.
			if err := os.MkdirAll(filepath.Join(r.configs[0].Dir, "records"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(r.configs[0].Dir, "records", store.LockName), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// A node that can not go on, and has nobody to tell it, is closed.
func TestBrokenIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 1, func(c *cluster.Config) { c.Groups = []cluster.GroupConfig{{Name: "g"}} })
		node := r.nodes[0].Load()
		cluster.Break(node, errors.New("broken"))
		eventually(t, "it is closed", func() bool { return node.Status().State == cluster.Left })
		if _, err := node.Group("g").Broadcast(t.Context(), nil); !errors.Is(err, cluster.ErrClosed) {
			t.Error(err)
		}
	})
}

// A broadcast is on the disk when it returns, and its position is that at which it is read.
func TestBroadcastIsDurable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		r := newRig(t, 1, func(c *cluster.Config) {
			c.Dir, c.Durable, c.Groups = dir, true, []cluster.GroupConfig{{Name: "g"}}
		})
		for k := range byte(20) {
			g := r.nodes[0].Load().Group("g")
			position, err := g.Broadcast(t.Context(), []byte{k})
			if err != nil {
				t.Fatal(err)
			}
			if s := r.nodes[0].Load().Status().Store; s.Durable == 0 {
				t.Fatal("nothing is on the disk")
			}
			s, err := g.Subscribe(position)
			if err != nil {
				t.Fatal(err)
			}
			if d := read(t, s, 1)[0]; d.Position != position || d.Payload[0] != k {
				t.Fatalf("%v at %d, and not at %d", d.Payload, d.Position, position)
			}
		}
	})
}
