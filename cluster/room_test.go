package cluster_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"parley/cluster"
	"parley/cluster/disk"
)

// A node whose disk is nearly full refuses requests that would be written, with the folder, and the free and
// needed bytes. It answers reads, finishes requests in flight, takes part in the requests of others, and can be
// stopped. With room again it accepts requests.
func TestNearlyFullDisk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		mem := disk.NewMemory(-1)
		slow := make(chan time.Duration, 1) // of the next sync
		r := configured(t, 3, func(i int, c *cluster.Config) {
			withTable(true)(c)
			c.Groups = []cluster.GroupConfig{{Name: "g"}}
			c.Times = cluster.Times{Suspect: 10 * time.Second} // longer than a sync
			if i == 0 {
				c.Broken = func(err error) { t.Error(err) }
				c.Disk = disk.Hooked{Disk: mem, Around: func(op disk.Op, do func() error) error {
					if op.Call == "sync" {
						select {
						case d := <-slow:
							time.Sleep(d)
						default:
						}
					}
					return do()
				}}
			}
		}).begin()
		ctx := soon(t, time.Minute)
		node, other := r.nodes[0].Load(), r.nodes[1].Load()
		free := func(bytes int64) *cluster.StoreStatus {
			mem.SetFree(bytes)
			time.Sleep(2 * time.Second)
			return node.Status().Store
		}
		kv := node.Table("t").KeyValue()
		put := func(value string) error {
			_, err := kv.Put(ctx, []byte("k"), []byte(value))
			return err
		}
		must(t, put("before"))
		session, err := node.Table("t").Open(ctx)
		must(t, err)
		if s := free(257 << 20); s.Low != "" || s.Full != "" || s.Free != 257<<20 || s.Position == 0 {
			t.Errorf("with room: %+v", s)
		}
		if s := free(255 << 20); !strings.Contains(s.Low, "255 MiB are free in "+r.configs[0].Dir) || s.Full != "" {
			t.Errorf("with little room: %+v", s)
		}
		if err := put("with little room"); err != nil {
			t.Error(err)
		}
		slow <- 3 * time.Second
		under := make(chan error, 1)
		go func() { under <- put("under way") }()
		s := free(40 << 20)
		if s.Low != "" || !strings.Contains(s.Full, "40 MiB are free") {
			t.Errorf("nearly full: %+v", s)
		}
		if err := <-under; err != nil {
			t.Errorf("what was under way: %v", err)
		}
		if s := node.Status().Store; s.Slowest != 3*time.Second {
			t.Errorf("the slowest commit: %v", s.Slowest)
		}
		_, cast := node.Group("g").Broadcast(ctx, []byte("x"))
		_, open := node.Table("t").Open(ctx)
		_, _, do := node.Table("t").Do(ctx, session, 1, nil)
		_, committed := node.Commit(ctx, "tx", bodies("do", 0, 1))
		refusedForRoom(t, r.configs[0].Dir, map[string]error{
			"broadcast": cast, "post": node.Group("g").BroadcastAsync([]byte("x")), "open": open, "do": do, "put": put("no"),
			"commit": committed,
		})
		if v, _, err := kv.Get(ctx, []byte("k")); err != nil || string(v) != "under way" {
			t.Errorf("read %q: %v", v, err)
		}
		if _, err := other.Table("t").KeyValue().Put(ctx, []byte("k"), []byte("of another")); err != nil {
			t.Error(err)
		}
		if _, err := other.Group("g").Broadcast(ctx, []byte("y")); err != nil {
			t.Error(err)
		}
		if v, _, err := kv.Get(ctx, []byte("k")); err != nil || string(v) != "of another" {
			t.Errorf("read %q: %v", v, err)
		}
		r.stop(0) // which requires that it has no error
		r.start(0)
		r.back(0)
		node = r.nodes[0].Load()
		kv = node.Table("t").KeyValue()
		if err := put("no"); !errors.Is(err, cluster.ErrNoRoom) {
			t.Errorf("after a restart: %v", err)
		}
		if s := free(1 << 30); s.Full+s.Low != "" {
			t.Errorf("with room again: %+v", s)
		}
		if err := put("again"); err != nil {
			t.Error(err)
		}
	})
}

// refusedForRoom requires that all requests were refused because 40 MiB are free in a folder.
func refusedForRoom(t *testing.T, dir string, errs map[string]error) {
	t.Helper()
	for what, err := range errs {
		if !errors.Is(err, cluster.ErrNoRoom) || !errors.Is(err, cluster.ErrRefused) || errors.Is(err, cluster.ErrUnknown) {
			t.Errorf("%s on a disk that is nearly full: %v", what, err)
			continue
		}
		for _, want := range []string{dir, "40 MiB", "64 MiB", "make room", "another node"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v does not say %q", what, err, want)
			}
		}
	}
}

// A node that is not durable writes no payloads and no commands, and accepts them on a full disk, too.
func TestNearlyFullInMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 1, func(c *cluster.Config) {
			withTable(false)(c)
			c.Groups = []cluster.GroupConfig{{Name: "g"}}
			c.Disk = disk.NewMemory(40 << 20)
		})
		node, ctx := r.nodes[0].Load(), soon(t, time.Minute)
		if _, err := node.Table("t").KeyValue().Put(ctx, []byte("k"), []byte("v")); err != nil {
			t.Error(err)
		}
		if _, err := node.Group("g").Broadcast(ctx, []byte("x")); err != nil {
			t.Error(err)
		}
	})
}
