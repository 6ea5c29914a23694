package cluster_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/cluster"
	"parley/faulty"
	"parley/replica/keyvalue"
	"parley/replica/rsm"
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

// In memory, a restarted node refuses commands until the others have admitted it. Then it has the same state.
func TestByzantineTableInMemory(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 4, func(c *cluster.Config) {
			c.Tables = []cluster.TableConfig{{Name: "t", Level: cluster.Byzantine}}
		})
		ctx := soon(t, time.Minute)
		r.put(ctx, 0, "a", "1")
		for i := range 4 {
			r.stop(i)
			r.configs[i].Rejoin = true
			r.start(i)
			r.put(ctx, i, "b", fmt.Sprint(i))
			if got, err := r.get(ctx, i, "a"); got != "1" || err != nil {
				t.Error(got, err)
			}
			r.same(ctx)
		}
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
		var log logged
		r.configs[3].Log = log.logger()
		r.start(3)
		eventually(t, "it serves again", func() bool {
			got, err := r.get(ctx, 3, "b")
			if err != nil && !errors.Is(err, cluster.ErrNotMember) && !errors.Is(err, cluster.ErrUnknown) {
				t.Fatal(err)
			}
			return err == nil && got == "2"
		})
		if fetched := strings.Contains(log.String(), "received the state of the others"); fetched != (puts > 10) {
			t.Errorf("it fetched the state: %t", fetched)
		}
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

// A node that was disconnected for so long that the others no longer keep what it missed fetches their state, although
// it has a disk. Meanwhile, it refuses commands, and those in flight have an unknown outcome. None of them is applied
// twice.
func TestByzantineTableCutOff(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 4, withByzantine)
		ctx := soon(t, 5*time.Minute)
		value := strings.Repeat("x", keyvalue.MaxValue)
		r.put(ctx, 0, "a", "1")
		r.same(ctx)
		r.cut(3)
		session := r.table(3).Session()
		answer := make(chan error, 1)
		go func() { answer <- second2(session.Do(ctx, keyvalue.Add([]byte("sum"), 1))) }()
		for i := range 500 {
			r.put(ctx, i%3, fmt.Sprint("key", i%10), value)
		}
		r.heal(3)
		must(t, <-answer)
		eventually(t, "it serves again", func() bool {
			got, err := r.get(ctx, 3, "sum")
			return err == nil && got == "1"
		})
		r.same(ctx)
	})
}

// While one node misbehaves in the order, in any way, the others serve and have the same state.
func TestByzantineTableTraitor(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		r := configured(t, 4, func(i int, c *cluster.Config) {
			if withByzantine(c); i == 3 && name != "down" {
				b, err := faulty.Parse(name)
				must(t, err)
				c.FaultInjection = &cluster.FaultInjection{Traitor: b}
			}
		})
		t.Cleanup(func() { r.stop(all(4)...) })
		which := all(4)
		if name == "down" {
			which = all(3)
		}
		r.start(which...)
		ctx := soon(t, 5*time.Minute)
		for i := range 30 {
			if b, _, err := r.table(i%3).Session().Do(ctx, keyvalue.Add([]byte("sum"), 1)); err != nil {
				t.Fatal(err)
			} else if a, _ := keyvalue.ReadAnswer(b); string(a.Value) != fmt.Sprint(i+1) {
				t.Fatalf("%s is not %d", a.Value, i+1)
			}
		}
		eventually(t, "the others have the same state", func() bool {
			var at, hash [3]uint64
			for i := range 3 {
				var err error
				at[i], hash[i], err = r.table(i).Inspect(ctx)
				must(t, err)
			}
			if at[0] != at[1] || at[0] != at[2] {
				return false
			}
			if hash[0] != hash[1] || hash[0] != hash[2] {
				t.Fatalf("at %d they have %x", at[0], hash)
			}
			return true
		})
	}, "down", "silent", "twofaced", "flip", "random")
}

// A session whose number another command has used, as a faulty node can, is not answered with that command. Its next
// command opens another session.
func TestByzantineTableSessionTaken(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 4, withByzantine)
		ctx := soon(t, time.Minute)
		id, err := r.table(0).Open(ctx)
		must(t, err)
		must(t, second2(r.table(3).Do(ctx, id, 1, keyvalue.Put([]byte("a"), []byte("theirs")))))
		_, _, err = r.table(0).Do(ctx, id, 1, keyvalue.Put([]byte("a"), []byte("mine")))
		if !errors.Is(err, cluster.ErrSessionTaken) || !errors.Is(err, cluster.ErrRefused) || errors.Is(err, cluster.ErrUnknown) {
			t.Error(err)
		}
		must(t, second2(r.table(3).Do(ctx, id, 7, keyvalue.Put([]byte("a"), []byte("theirs")))))
		_, _, err = r.table(0).Do(ctx, id, 2, keyvalue.Put([]byte("a"), []byte("mine")))
		if !errors.Is(err, cluster.ErrSessionTaken) || !errors.Is(err, cluster.ErrUnknown) {
			t.Error(err)
		}
		if got, err := r.get(ctx, 0, "a"); got != "theirs" || err != nil {
			t.Error(got, err)
		}
		// A session of a node is the one that was opened last, so its number is known here.
		session := r.table(1).Session()
		must(t, second2(session.Do(ctx, keyvalue.Put([]byte("b"), []byte("1")))))
		position, _, err := r.table(1).Inspect(ctx)
		must(t, err)
		must(t, second2(r.table(3).Do(ctx, rsm.Client(position-1), 2, keyvalue.Put([]byte("b"), []byte("theirs")))))
		must(t, second2(session.Do(ctx, keyvalue.Put([]byte("b"), []byte("2")))))
		if got, err := r.get(ctx, 0, "b"); got != "2" || err != nil {
			t.Error(got, err)
		}
	})
}

// A table with data keeps its level. Three nodes cannot have a table of level byzantine.
func TestByzantineTableOtherLevel(t *testing.T) {
	each(t, func(t *testing.T, was cluster.Level) {
		config := map[cluster.Level]func(*cluster.Config){cluster.Total: withTable(true), cluster.Byzantine: withByzantine}[was]
		r := newRig(t, 4, config)
		other := cluster.Total + cluster.Byzantine - was
		r.stop(0)
		c := r.configs[0]
		c.Tables = []cluster.TableConfig{{Name: "t", Level: other}}
		_, err := cluster.Join(t.Context(), c)
		want := fmt.Sprintf("table t: level %v: its records are of level %v: give the table another name", other, was)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, and %q is expected", err, want)
		}
		c.Tables = []cluster.TableConfig{{Name: "new", Level: cluster.Byzantine}}
		c.Members = c.Members[:3]
		if _, err = cluster.Join(t.Context(), c); err == nil || !strings.Contains(err.Error(),
			"table new: level byzantine among 3 members: allowed are 4 to 13") {
			t.Error(err)
		}
	}, cluster.Total, cluster.Byzantine)
}

// second2 returns the error of a command whose result does not matter.
func second2[T, U any](_ T, _ U, err error) error { return err }
