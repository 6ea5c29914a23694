package cluster_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/cluster"
	"parley/cluster/tables"
	"parley/replica/keyvalue"
	"parley/replica/rsm"
)

// Each error says whether the command may have been applied.
func TestTableErrors(t *testing.T) {
	bubble(t, func(t *testing.T) {
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
		must(t, err)
		_, _, err = a.Do(ctx, session, 1, make([]byte, cluster.MaxCommand+1))
		refused("a long command", err, cluster.ErrRefused)
		_, _, err = a.Do(ctx, 7, 1, add)
		refused("no session", err, cluster.ErrRefused)
		_, _, err = a.Do(ctx, session, 0, add)
		refused("no number", err, cluster.ErrRefused)
		_, _, err = a.Do(ctx, session+1000, 1, add)
		refused("a session that nobody opened", err, cluster.ErrExpired, cluster.ErrUnknown)

		// Three calls of the same command, two of them at another node, apply it once.
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

		// The session that was silent for the longest time is dropped, and no command of it is applied. A client
		// that counts by itself opens another one.
		client := a.KeyValue()
		if sum, err := client.Add(ctx, []byte("k"), 1); sum != 2 || err != nil {
			t.Errorf("%d, %v", sum, err)
		}
		for range 3 {
			must(t, second(a.Open(ctx)))
		}
		_, _, err = a.Do(ctx, session, 6, add)
		refused("an old session", err, cluster.ErrExpired)
		if sum, err := client.Add(ctx, []byte("k"), 1); sum != 3 || err != nil {
			t.Errorf("%d, %v", sum, err)
		}

		// Without a majority, commands in flight have an unknown outcome; those not sent have no effect.
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
		if unknown != 4 || not != 16 { // one command in each batch, four batches
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

// A running node that the others exclude does not know the outcome of commands in flight, and sends no more until
// it has rejoined. A counting client retries by itself.
func TestTableExcluded(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 3, func(c *cluster.Config) { c.Tables = []cluster.TableConfig{{Name: "t"}} })
		ctx := soon(t, 20*time.Second)
		session, err := r.table(2).Open(ctx)
		must(t, err)
		client, add := r.table(2).KeyValue(), keyvalue.Add([]byte("k"), 1)
		if sum, err := client.Add(ctx, []byte("k"), 1); sum != 1 || err != nil {
			t.Fatal(sum, err)
		}
		r.cut(2)
		var asking sync.WaitGroup
		asking.Go(func() {
			_, _, err := r.table(2).Do(ctx, session, 1, add)
			if !errors.Is(err, cluster.ErrUnknown) || !errors.Is(err, cluster.ErrNotMember) {
				t.Errorf("what was under way: %v", err)
			}
			if _, _, err := r.table(2).Do(ctx, session, 2, add); !errors.Is(err, cluster.ErrNotMember) || errors.Is(err, cluster.ErrUnknown) {
				t.Errorf("what is asked then: %v", err)
			}
		})
		asking.Go(func() {
			if _, err := client.Add(ctx, []byte("k"), 1); err != nil {
				t.Errorf("a client that counts: %v", err)
			}
		})
		// The others continue without it.
		if _, err := r.table(0).KeyValue().Add(ctx, []byte("k"), 1); err != nil {
			t.Error(err)
		}
		r.heal(2)
		asking.Wait()
		r.back(2)
		_, _, err = r.table(1).Do(ctx, session, 1, add) // now it is applied, if it was not
		if err != nil {
			t.Error(err)
		}
		r.same(ctx)
		if value, _, err := client.Get(ctx, []byte("k")); string(value) != "4" || err != nil {
			t.Errorf("the sum is %s, %v", value, err)
		}
	})
}

// Invalid configurations are refused.
func TestTableConfigs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for want, config := range map[string]cluster.Config{
			"allowed are total":   {Tables: []cluster.TableConfig{{Name: "a", Level: cluster.Atomic}}},
			"allowed are 4 to 13": {Tables: []cluster.TableConfig{{Name: "a", Level: cluster.Byzantine}}},
			"sessions":            {Tables: []cluster.TableConfig{{Name: "a", Sessions: -1}}},
			"two tables":          {Tables: []cluster.TableConfig{{Name: "a"}, {Name: "a"}}},
			"needs a data folder": {Durable: true},
		} {
			r := configured(t, 1, func(_ int, c *cluster.Config) { c.Tables, c.Durable = config.Tables, config.Durable })
			_, err := cluster.Join(t.Context(), r.configs[0])
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: %v", want, err)
			}
		}
	})
}

// heap is a machine with a long state.
type heap struct{ bytes int }

func (h *heap) Apply([]byte) []byte        { return nil }
func (h *heap) Snapshot() []byte           { return make([]byte, h.bytes) }
func (h *heap) Restore(b []byte) bool      { return len(b) == h.bytes }
func newHeap(n int) func() rsm.Application { return func() rsm.Application { return &heap{n} } }

// A restarted node gets a long state in pieces, while clients continue.
func TestTableLongState(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 3, func(c *cluster.Config) {
			onDisk(c, false)
			c.Tables = []cluster.TableConfig{{Name: "t", New: newHeap(20 << 20)}}
			c.Times = cluster.Times{} // copying and hashing such a state takes time
		})
		r.stop(2)
		r.start(2)
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
			t.Error(err)
		}
		stop()
		clients.Wait()
		r.same(soon(t, 10*time.Second))
	})
}

// A state that is too long is not sent. The node that should send it reports that, and the others continue.
func TestTableTooLongState(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log logged
		r := newRig(t, 3, func(c *cluster.Config) {
			onDisk(c, false)
			c.Tables = []cluster.TableConfig{{Name: "t", New: newHeap(2 << 20)}}
			c.Log, c.Test().Tables = log.logger(), tables.DefaultLimits
			c.Test().Tables.Snapshot = 1 << 20
		})
		r.stop(2)
		r.start(2)
		eventually(t, "it is said", func() bool { return strings.Contains(log.String(), "state is too large for a joining node") })
		if _, _, err := r.table(0).Session().Do(soon(t, 10*time.Second), nil); err != nil {
			t.Errorf("the others: %v", err)
		}
	})
}

// A node that has lost its disk is admitted again as a new member, and gets the state of the others.
func TestLostDisk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 3, withTable(true))
		for range 2 { // the second time it has had several incarnations
			if _, _, err := r.table(0).Session().Do(soon(t, 10*time.Second), nil); err != nil {
				t.Fatal(err)
			}
			r.restart(2)
			r.lose(2)
			r.restart(2)
		}
		r.same(soon(t, 10*time.Second))
	})
}

// The incarnations of a node are counted in its folder. An earlier one, as from an old copy of the folder, is
// refused by all nodes that have seen a later one.
func TestIncarnation(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log logged
		r := newRig(t, 3, func(c *cluster.Config) {
			withTable(false)(c)
			c.Log = log.logger()
		})
		copied, last := r.disk(2).Crash(nil), uint64(0)
		for life := range 3 {
			now := r.nodes[2].Load().Status().Incarnation
			if life > 0 && now != last+1 {
				t.Fatalf("incarnation %d after %d", now, last)
			}
			last = now
			r.restart(2)
		}
		r.stop(2)
		r.configs[2].Disk = copied
		if _, err := cluster.Join(t.Context(), r.configs[2]); !errors.Is(err, cluster.ErrStaleIncarnation) {
			t.Error(err)
		}
		eventually(t, "it is said", func() bool { return strings.Contains(log.String(), "old incarnation") })
	})
}
