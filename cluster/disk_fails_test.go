package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"parley/cluster"
	"parley/cluster/disk"
	"parley/trace"
)

// changes are the calls of a disk that change something.
var changes = []string{"mkdir", "create", "write", "sync", "reserve", "truncate", "rename", "remove", "syncdir"}

// turning is a disk in memory that fails from one of its changes on, or, if err is nil, no longer answers.
type turning struct {
	mem  *disk.Memory
	from int64
	err  error
	end  chan struct{} // of the test

	told  atomic.Pointer[error] // by Broken
	calls atomic.Int64
	// merged says that logs were merged.
	merged atomic.Bool
	first  sync.Once
	what   atomic.Pointer[disk.Op] // the first failing call
	began  time.Time               // start of what
	// failed are the names of files with failed or waiting calls: two goroutines may write at the same time.
	failed sync.Map
}

func (d *turning) around(op disk.Op, do func() error) error {
	if !slices.Contains(changes, op.Call) {
		return do()
	}
	if strings.Contains(op.Name, "base-") {
		d.merged.Store(true)
	}
	if k := d.calls.Add(1); k < d.from {
		return do()
	}
	d.first.Do(func() { // two goroutines may fail at once: neither returns before it is known what failed first
		d.began = time.Now()
		d.what.Store(&op)
	})
	d.failed.Store(op.Name, true)
	if d.err != nil {
		return d.err
	}
	<-d.end
	return syscall.EIO
}

// A disk fails, fills up, turns read-only, or stops answering at any write of a node, from its first start to its
// end: the node ends within the limit plus 1 s, all its calls fail, including waiting ones, errors name the file
// and the goroutine left in the kernel, and what it acknowledged is there after a restart.
func TestNodeEndsWhenItsDiskFails(t *testing.T) {
	for name, err := range map[string]error{
		"input/output error": syscall.EIO, "full": syscall.ENOSPC, "read-only": syscall.EROFS, "no answer": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var running, begins, ends, merges int
			for k := int64(1); ; k++ {
				d := &turning{from: k, err: err}
				var at string
				synctest.Test(t, func(t *testing.T) { at = d.try(t) })
				switch at {
				case "begin":
					begins++
				case "end":
					ends++
				case "run":
					running++
				}
				if d.merged.Load() {
					merges++
				}
				if at == "" || t.Failed() {
					break
				}
			}
			t.Logf("%d failures at the start, %d at the end, %d between; %d with merges", begins, ends, running, merges)
			if begins < 15 || running < 60 || ends < 3 || merges < 20 {
				t.Error("there are too few")
			}
		})
	}
}

const tightLimit = 2 * time.Second

// try runs a node until its disk fails, and returns at which call that was; empty if it did not fail.
func (d *turning) try(t *testing.T) (at string) {
	d.mem, d.end = disk.NewMemory(-1), make(chan struct{})
	defer close(d.end)
	r := configured(t, 1, func(_ int, c *cluster.Config) {
		c.Dir, c.Durable, c.DiskLimit = "data", true, tightLimit
		c.Tables, c.Groups = []cluster.TableConfig{{Name: "t"}}, []cluster.GroupConfig{{Name: "g"}}
		c.Test().LogSize, c.Test().Compact = 1<<10, 4
		if d.from%2 == 0 { // it does not close itself
			c.Broken = func(err error) { d.told.Store(&err) }
		}
		c.Disk = disk.Hooked{Disk: d.mem, Around: d.around}
	})
	node, err := cluster.Join(t.Context(), r.configs[0])
	if err != nil {
		d.ended(t, "Join", time.Time{}, err)
		return "begin"
	}
	acked, err := d.work(t, node)
	at = "run"
	if err == nil {
		at = "end"
	}
	began := time.Now()
	if err := node.Close(); err != nil {
		d.ended(t, "Close", began, err)
	} else if d.what.Load() != nil && !d.harmless() {
		t.Errorf("%v failed, and Close has no error", *d.what.Load())
	}
	if d.what.Load() == nil {
		return ""
	}
	d.fails(t, node)
	synctest.Wait()
	r.configs[0].Disk = d.mem.Crash(nil)
	node, err = cluster.Join(t.Context(), r.configs[0])
	if err != nil {
		t.Fatalf("%v failed: %v", *d.what.Load(), err)
	}
	d.kept(t, node, acked)
	if err := node.Close(); err != nil {
		t.Error(err)
	}
	return at
}

// harmless reports whether the failed call is not part of the records.
func (d *turning) harmless() bool { return strings.Contains(d.what.Load().Name, "flight") }

// names reports whether an error names a file with a failed call.
func (d *turning) names(err error) (named bool) {
	d.failed.Range(func(name, _ any) bool {
		named = named || strings.Contains(err.Error(), name.(string))
		return !named
	})
	return named
}

// ended requires that an error names the file and came in time, counted from since or from the failure, whichever
// was later.
func (d *turning) ended(t *testing.T, who string, since time.Time, err error) {
	t.Helper()
	op := d.what.Load()
	if op == nil {
		t.Fatalf("%s: the disk has not failed: %v", who, err)
	}
	if d.began.After(since) {
		since = d.began
	}
	if took := time.Since(since); d.err != nil && took > time.Second || took > tightLimit+time.Second {
		t.Errorf("%s of %s: %s took %v", op.Call, op.Name, who, took)
	}
	if text := err.Error(); !d.names(err) || d.err == nil && !strings.Contains(text, "goroutine") {
		t.Errorf("%s of %s: %s: %v", op.Call, op.Name, who, err)
	}
}

// work puts and broadcasts until the first error, and returns how many were acknowledged.
func (d *turning) work(t *testing.T, node *cluster.Node) (acked int, err error) {
	ctx := soon(t, time.Minute) // within which a node must have failed
	reader, err := node.Group("g").Subscribe(1)
	if err != nil {
		return 0, err
	}
	reads := make(chan error, 1)
	go func() {
		for {
			if _, err := reader.Next(ctx); err != nil {
				reads <- err
				return
			}
		}
	}()
	kv := node.Table("t").KeyValue()
	for k := range 16 {
		if _, err = kv.Put(ctx, []byte("k"), fmt.Appendf(nil, "%0100d", k+1)); err != nil {
			break
		}
		if k%4 == 0 {
			if _, err = node.Group("g").Broadcast(ctx, []byte{byte(k)}); err != nil {
				break
			}
		}
		acked = k + 1
		time.Sleep(50 * time.Millisecond) // while checkpoints replace records
	}
	if err == nil {
		return acked, nil
	}
	d.ended(t, "a call", time.Time{}, err)
	if !errors.Is(err, cluster.ErrClosed) {
		t.Errorf("a call of a broken node: %v", err)
	}
	if err := <-reads; err == nil || !errors.Is(err, cluster.ErrClosed) {
		t.Errorf("a subscription of a broken node: %v", err)
	}
	began := time.Now()
	if d.fails(t, node); time.Since(began) > 0 {
		t.Errorf("calls of a broken node took %v", time.Since(began))
	}
	if err := node.Close(); err == nil || time.Since(began) > time.Second {
		t.Errorf("closed after %v: %v", time.Since(began), err)
	}
	time.Sleep(time.Second - time.Since(began))
	synctest.Wait()
	if told := d.told.Load(); d.from%2 == 0 && (told == nil || d.err != nil && !d.names(*told)) {
		t.Errorf("%v failed, and the owner is told %v", *d.what.Load(), told)
	}
	return acked, err
}

// fails requires that all calls of a node fail.
func (d *turning) fails(t *testing.T, node *cluster.Node) {
	t.Helper()
	ctx := context.Background()
	_, cast := node.Group("g").Broadcast(ctx, nil)
	_, open := node.Table("t").Open(ctx)
	_, _, query := node.Table("t").Query(ctx, nil)
	_, _, inspect := node.Table("t").Inspect(ctx)
	_, commit := node.Commit(ctx, "tx", map[string][]byte{"node1": nil})
	_, agree := node.Agree(ctx, cluster.AgreeRequest{Value: []byte("x")})
	_, propose := node.AgreeVector(ctx, cluster.VectorRequest{Name: "x", Value: []byte("x")})
	for what, err := range map[string]error{
		"broadcast": cast, "post": node.Group("g").BroadcastAsync(nil), "open": open, "query": query, "inspect": inspect,
		"commit": commit, "agree": agree, "propose": propose, "drain": node.Drain(ctx), "leave": node.Leave(ctx),
	} {
		if !errors.Is(err, cluster.ErrClosed) {
			t.Errorf("%s at a broken node: %v", what, err)
		}
	}
}

// kept requires that everything acknowledged is there.
func (d *turning) kept(t *testing.T, node *cluster.Node, acked int) {
	t.Helper()
	ctx := soon(t, 10*time.Second)
	kv := node.Table("t").KeyValue()
	if v, _, err := kv.Get(ctx, []byte("k")); acked > 0 {
		if n, wrong := strconv.Atoi(string(v)); err != nil || wrong != nil || n < acked {
			t.Errorf("%v failed, and put %d is lost: %s, %v", *d.what.Load(), acked, v, err)
		}
	}
	reader, err := node.Group("g").Subscribe(1)
	must(t, err)
	for k := 0; k < acked; k += 4 {
		if x, err := reader.Next(ctx); err != nil || x.Payload[0] != byte(k) {
			t.Fatalf("%v failed, and broadcast %d is lost: %v, %v", *d.what.Load(), k, x.Payload, err)
		}
	}
}

// stuck is a trace whose Close blocks.
type stuck struct{ end chan struct{} }

func (stuck) Write(b []byte) (int, error) { return len(b), nil }
func (s stuck) Close() error              { <-s.end; return nil }

// A trace on a disk that does not answer does not keep a node from ending.
func TestStuckTrace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		end := make(chan struct{})
		defer close(end)
		r := newRig(t, 1, func(c *cluster.Config) {
			c.DiskLimit, c.Groups = tightLimit, []cluster.GroupConfig{{Name: "g"}}
			c.Trace = &cluster.Tracing{Open: func(trace.Header) (io.WriteCloser, error) { return stuck{end}, nil }}
		})
		began := time.Now()
		if r.stop(0); time.Since(began) > tightLimit+time.Second {
			t.Errorf("it ended after %v", time.Since(began))
		}
	})
}

// An invalid limit is refused.
func TestDiskLimit(t *testing.T) {
	for _, limit := range []time.Duration{-1, 99 * time.Millisecond, 2 * time.Hour} {
		if err := (cluster.Config{DiskLimit: limit}).CheckDisk(); err == nil || !strings.Contains(err.Error(), "100ms to 1h") {
			t.Errorf("%v: %v", limit, err)
		}
	}
}
