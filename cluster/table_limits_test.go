package cluster_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/cluster"
	"parley/replica/keyvalue"
	"parley/replica/service"
)

// soon is a context that ends soon.
func soon(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// Each error tells whether the command may have been carried out.
func TestTableErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, func(c *cluster.Config) {
			c.Tables = []cluster.TableConfig{{Name: "t", Sessions: 3, Waiting: 8}}
		})
		ctx := soon(t, 10*time.Second)
		a := r.table(0)
		add := keyvalue.Add([]byte("k"), 1)
		refused := func(what string, err error, is ...error) {
			t.Helper()
			for _, kind := range is {
				if !errors.Is(err, kind) {
					t.Errorf("%s: %v", what, err)
				}
			}
		}
		session, err := a.Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = a.Do(ctx, session, 1, make([]byte, cluster.MaxCommand+1))
		refused("a long command", err, cluster.ErrRefused)
		_, _, err = a.Do(ctx, 7, 1, add)
		refused("no session", err, cluster.ErrRefused)
		_, _, err = a.Do(ctx, session, 0, add)
		refused("no number", err, cluster.ErrRefused)
		_, _, err = a.Do(ctx, session+1000, 1, add)
		refused("a session that nobody opened", err, cluster.ErrExpired, cluster.ErrUnknown)

		// Three who ask the same at once, two of them elsewhere, have it done once.
		var asking sync.WaitGroup
		for i := range 3 {
			for range 2 {
				asking.Go(func() {
					b, position, err := r.table(i).Do(ctx, session, 5, add)
					if got, _ := keyvalue.ReadAnswer(b); string(got.Value) != "1" || position == 0 || err != nil {
						t.Errorf("node %d: %s at %d, %v", i, got.Value, position, err)
					}
				})
			}
		}
		asking.Wait()
		_, _, err = a.Do(ctx, session, 4, add)
		refused("a number of before", err, cluster.ErrUnknown)

		// The session that was silent the longest is forgotten, and nothing is done under it. A
		// client that counts by itself begins another.
		client := a.KeyValue()
		if sum, err := client.Add(ctx, []byte("k"), 1); sum != 2 || err != nil {
			t.Errorf("%d, %v", sum, err)
		}
		for range 3 {
			if _, err := a.Open(ctx); err != nil {
				t.Fatal(err)
			}
		}
		_, _, err = a.Do(ctx, session, 6, add)
		refused("an old session", err, cluster.ErrExpired)
		if sum, err := client.Add(ctx, []byte("k"), 1); sum != 3 || err != nil {
			t.Errorf("%d, %v", sum, err)
		}

		// Without a majority nobody knows what becomes of what was sent, and what was not is not.
		r.stop(1, 2)
		var unknown, not int
		var mu sync.Mutex
		short := soon(t, 300*time.Millisecond)
		for number := range uint64(20) {
			asking.Go(func() {
				_, _, err := a.Do(short, session, 10+number, add)
				mu.Lock()
				defer mu.Unlock()
				switch {
				case errors.Is(err, cluster.ErrUnknown):
					unknown++
				case errors.Is(err, cluster.ErrRefused):
					not++
				default:
					t.Errorf("without a majority: %v", err)
				}
			})
			time.Sleep(time.Millisecond)
		}
		asking.Wait()
		if unknown != 4 || not != 16 { // a command a pack, four packs
			t.Errorf("%d are unknown, %d were not asked", unknown, not)
		}
		asking.Go(func() {
			_, _, err := a.Query(ctx, add)
			refused("a node that is closed meanwhile", err, cluster.ErrClosed)
		})
		time.Sleep(10 * time.Millisecond)
		r.stop(0)
		asking.Wait()
		_, _, err = a.Query(ctx, add)
		refused("a node that is closed", err, cluster.ErrClosed)
		_, _, err = a.Inspect(ctx)
		refused("a node that is closed", err, cluster.ErrClosed)
	})
}

// A node that the others exclude, though it lives, knows nothing of what was under way, and
// asks nothing more until it has joined again. A client that counts asks again by itself.
func TestTableExcluded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{tb: t}
		configured(t, r, 3, func(c *cluster.Config) { c.Tables = []cluster.TableConfig{{Name: "t"}} })
		t.Cleanup(func() { r.stop(0, 1, 2) })
		r.start(0, 1, 2)
		ctx := soon(t, 20*time.Second)
		session, err := r.table(2).Open(ctx)
		if err != nil {
			t.Fatal(err)
		}
		client, add := r.table(2).KeyValue(), keyvalue.Add([]byte("k"), 1)
		if sum, err := client.Add(ctx, []byte("k"), 1); sum != 1 || err != nil {
			t.Fatal(sum, err)
		}
		r.cut(2)
		var asking sync.WaitGroup
		asking.Go(func() {
			_, _, err := r.table(2).Do(ctx, session, 1, add)
			if !errors.Is(err, cluster.ErrUnknown) || !errors.Is(err, cluster.ErrOut) {
				t.Errorf("what was under way: %v", err)
			}
			if _, _, err := r.table(2).Do(ctx, session, 2, add); !errors.Is(err, cluster.ErrOut) || errors.Is(err, cluster.ErrUnknown) {
				t.Errorf("what is asked then: %v", err)
			}
		})
		asking.Go(func() {
			if _, err := client.Add(ctx, []byte("k"), 1); err != nil {
				t.Errorf("a client that counts: %v", err)
			}
		})
		// Alone the others go on.
		if _, err := r.table(0).KeyValue().Add(ctx, []byte("k"), 1); err != nil {
			t.Error(err)
		}
		r.heal(2)
		asking.Wait()
		r.back(2)
		_, _, err = r.table(1).Do(ctx, session, 1, add) // now it is done, if it was not
		if err != nil {
			t.Error(err)
		}
		r.same(ctx)
		if value, _, err := client.Get(ctx, []byte("k")); string(value) != "4" || err != nil {
			t.Errorf("the sum is %s, %v", value, err)
		}
	})
}

// What no table can be is told.
func TestTableConfigs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, config := range map[string]cluster.Config{
			"order must be total": {Tables: []cluster.TableConfig{{Name: "a", Level: cluster.Byzantine}}},
			"sessions":            {Tables: []cluster.TableConfig{{Name: "a", Sessions: -1}}},
			"two tables":          {Tables: []cluster.TableConfig{{Name: "a"}, {Name: "a"}}},
			"needs a folder":      {Durable: true},
		} {
			var err error
			func() {
				r := &rig{tb: t, configs: nil}
				configured(t, r, 1, func(c *cluster.Config) { c.Tables, c.Durable = config.Tables, config.Durable })
				_, err = cluster.Join(t.Context(), r.configs[0])
			}()
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", want, err)
			}
		}
	})
}

// heap is a machine with a long state.
type heap struct{ bytes int }

func (h *heap) Apply([]byte) []byte            { return nil }
func (h *heap) Snapshot() []byte               { return make([]byte, h.bytes) }
func (h *heap) Restore(b []byte) bool          { return len(b) == h.bytes }
func newHeap(n int) func() service.Application { return func() service.Application { return &heap{n} } }

// lines is what was logged.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lines) wait(t *testing.T, what string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		l.mu.Lock()
		has := strings.Contains(l.b.String(), what)
		l.mu.Unlock()
		if has {
			return
		}
		if time.Now().After(end) {
			t.Errorf("nobody says %q", what)
			return
		}
	}
}

// A long state is given to a node that comes back, in pieces, while clients go on. One that
// is too long is not, and who should give it says so; the others go on.
func TestTableLongState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, size := range []int{40 << 20, 12 << 20} {
			if size < 40<<20 {
				cluster.LongestState(t, 1<<20)
			}
			var log lines
			dir := t.TempDir()
			r := newRig(t, 3, func(c *cluster.Config) {
				c.Dir = filepath.Join(dir, c.Name)
				c.Tables = []cluster.TableConfig{{Name: "t", New: newHeap(size)}}
				c.Log = slog.New(slog.NewTextHandler(&log, nil))
				c.Times = cluster.Times{} // to copy and hash such a state takes its time
			})
			r.stop(2)
			r.start(2)
			if size >= 40<<20 {
				asked, stop := context.WithCancel(soon(t, 20*time.Second))
				var clients sync.WaitGroup
				clients.Go(func() {
					for s := r.table(0).Session(); asked.Err() == nil; {
						if _, _, err := s.Do(asked, []byte("x")); err != nil && asked.Err() == nil {
							t.Error(err)
							return
						}
					}
				})
				if _, _, err := r.table(2).Session().Do(soon(t, 15*time.Second), nil); err != nil {
					t.Errorf("%d bytes: %v", size, err)
				}
				stop()
				clients.Wait()
				r.same(soon(t, 10*time.Second))
				continue
			}
			log.wait(t, "does not take the state")
			if _, _, err := r.table(0).Session().Do(soon(t, 10*time.Second), nil); err != nil {
				t.Errorf("the others: %v", err)
			}
		}
	})
}

// A node that has lost its disk is let in again, as one that comes for the first time, and
// gets what the others have.
func TestLostDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, 3, withTable(t, true))
		for range 2 { // the second time it has had more than one life
			if _, _, err := r.table(0).Session().Do(soon(t, 10*time.Second), nil); err != nil {
				t.Fatal(err)
			}
			r.stop(2)
			r.start(2)
			r.back(2)
			r.stop(2)
			if err := os.RemoveAll(r.configs[2].Dir); err != nil {
				t.Fatal(err)
			}
			r.configs[2].Rejoin = true
			r.start(2)
			r.back(2)
		}
		r.same(soon(t, 10*time.Second))
	})
}

// The incarnations of a node are counted in its folder. A node that comes with an earlier one, as
// from an old copy of the folder, is refused by all that have seen a later one.
func TestIncarnation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		r := newRig(t, 3, withTable(t, false))
		for i := range r.configs {
			r.configs[i].Log = slog.New(slog.NewTextHandler(&log, nil))
		}
		dir, copied := r.configs[2].Dir, filepath.Join(t.TempDir(), "copy")
		var last uint64
		for life := range 3 {
			now := r.nodes[2].Load().Status().Incarnation
			if life > 0 && now != last+1 {
				t.Fatalf("incarnation %d after %d", now, last)
			}
			last = now
			r.stop(2)
			if life == 0 {
				if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
			}
			if life < 2 {
				r.start(2)
				r.back(2)
			}
		}
		if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, os.DirFS(copied))); err != nil {
			t.Fatal(err)
		}
		if _, err := cluster.Join(t.Context(), r.configs[2]); !errors.Is(err, cluster.ErrForgotten) {
			t.Error(err)
		}
		log.wait(t, "old incarnation")
	})
}
