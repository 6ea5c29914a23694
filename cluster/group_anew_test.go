package cluster_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley"
	"parley/cluster"
)

// In a Byzantine group of four, members are closed and rejoin, twice. In a durable group these are one at a time, two,
// or all. In a group in memory only one may be down at a time. The order continues, and each member delivers everything
// at the same positions as all others, in each of its incarnations.
func TestByzantineGroupBeginsAgain(t *testing.T) {
	type restart struct {
		count   int
		durable bool
	}
	each(t, func(t *testing.T, r restart) {
		count := r.count
		var mu sync.Mutex
		places := make(map[uint64]string)
		saw := make([]map[string]bool, 4)
		configs := make([]cluster.Config, 4)
		group := func(i int) []cluster.GroupConfig {
			mine := make(map[string]bool)
			saw[i] = mine
			return []cluster.GroupConfig{{Name: "g", Level: cluster.Byzantine, Deliver: func(d cluster.Delivery) {
				mu.Lock()
				defer mu.Unlock()
				what := fmt.Sprintf("%d:%s", d.From, d.Payload)
				if mine[what] {
					t.Errorf("node %d delivers %s twice", i, what)
				}
				mine[what] = true
				if was := places[d.Position]; was != "" && was != what {
					t.Errorf("node %d delivers %s at %d, and another one %s", i, what, d.Position, was)
				}
				places[d.Position] = what
			}}}
		}
		nodes := joined(t, 4, func(i int, c *cluster.Config) {
			onDisk(c, r.durable)
			c.Times, c.Groups = hasty, group(i)
			configs[i] = *c
		})
		all := func(what string) func() bool {
			return func() bool {
				mu.Lock()
				defer mu.Unlock()
				for i := range 4 {
					if !saw[i][what] {
						return false
					}
				}
				return true
			}
		}
		say := func(i int, what string) {
			t.Helper()
			position, err := nodes[i].Group("g").Broadcast(soon(t, 30*time.Second), []byte(what))
			must(t, err)
			eventually(t, "all deliver "+what, all(fmt.Sprintf("%d:%s", i, what)))
			mu.Lock()
			defer mu.Unlock()
			if got, want := places[position], fmt.Sprintf("%d:%s", i, what); got != want {
				t.Errorf("%s is at %d, where %s is expected", got, position, want)
			}
		}
		say(3, "first")
		for round := range 2 {
			for i := range count {
				must(t, nodes[i].Close())
			}
			mu.Lock()
			for i := range count {
				configs[i].Groups = group(i)
			}
			mu.Unlock()
			var joins sync.WaitGroup
			for i := range count {
				joins.Go(func() {
					back, err := cluster.Join(t.Context(), configs[i])
					if err != nil {
						t.Error(err)
						return
					}
					nodes[i] = back
				})
			}
			joins.Wait()
			began := time.Now()
			eventually(t, "all take part", func() bool {
				return !slices.ContainsFunc(nodes, func(n *cluster.Node) bool { return !n.Status().Groups[0].In })
			})
			for i := range 4 {
				say(i, fmt.Sprint("again ", round))
			}
			eventually(t, "everything is delivered by all, also what was delivered before", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return !slices.ContainsFunc(saw, func(x map[string]bool) bool { return len(x) != len(places) })
			})
			t.Log("round", round, time.Since(began))
		}
	}, restart{1, false}, restart{1, true}, restart{2, true}, restart{4, true})
}

// A member of a durable Byzantine group loses its disk, and joins as a new member. Until the others have admitted it,
// it refuses broadcasts. It delivers everything at the positions of the others. If then all members restart at once,
// all have everything.
func TestByzantineGroupLosesDisk(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := configured(t, 4, func(_ int, c *cluster.Config) {
			onDisk(c, true)
			c.Groups = []cluster.GroupConfig{{Name: "g", Level: cluster.Byzantine}}
		}).begin()
		ctx := soon(t, time.Minute)
		var want []cluster.Delivery
		says := func(i int, what string) {
			t.Helper()
			position, err := r.nodes[i].Load().Group("g").Broadcast(ctx, []byte(what))
			must(t, err)
			want = append(want, cluster.Delivery{Position: position, From: parley.ID(i), Payload: []byte(what)})
		}
		has := func(i int) {
			t.Helper()
			s, err := r.nodes[i].Load().Group("g").Subscribe(1)
			must(t, err)
			for k, d := range read(t, s, len(want)) {
				if w := want[k]; d.Position != w.Position || d.From != w.From || string(d.Payload) != string(w.Payload) {
					t.Errorf("node %d delivers %v, and %v is expected", i+1, d, w)
				}
			}
		}
		for i := range 4 {
			says(i, fmt.Sprint("first ", i))
		}
		r.lose(3)
		says(1, "missed")
		r.start(3)
		node := r.nodes[3].Load()
		has(3)
		eventually(t, "it is admitted", func() bool {
			_, err := node.Group("g").Broadcast(ctx, []byte("mine"))
			if err != nil && !errors.Is(err, cluster.ErrNotMember) {
				t.Fatal(err)
			}
			return err == nil
		})
		if v := node.Status().Groups[0]; !v.In {
			t.Errorf("%+v", v)
		}
		want = append(want, cluster.Delivery{Position: want[len(want)-1].Position + 1<<16, From: 3, Payload: []byte("mine")})
		r.configs[3].Rejoin = false
		r.stop(all(4)...)
		r.start(all(4)...)
		says(3, "last")
		for i := range 4 {
			has(i)
		}
	})
}

// A durable Byzantine group refuses to start with records of another m, and says how to begin again.
func TestByzantineGroupOfOtherMembers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := configured(t, 4, func(_ int, c *cluster.Config) {
			onDisk(c, true)
			c.Groups = []cluster.GroupConfig{{Name: "g", Level: cluster.Byzantine}}
		}).begin()
		r.stop(all(4)...)
		r.configs[0].Members = slices.Clone(r.configs[0].Members)
		r.configs[0].Members[3].Name = "node5"
		_, err := cluster.Join(t.Context(), r.configs[0])
		want := "group g: its records are of m = 1 of node1, node2, node3, node4, and not m = 1 of node1, node2, node3, node5: " +
			"give the group another name to begin again"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
		r.configs[0].Groups = []cluster.GroupConfig{{Name: "h", Level: cluster.Byzantine}}
		node, err := cluster.Join(t.Context(), r.configs[0])
		must(t, err)
		must(t, node.Close())
	})
}
