package cluster_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"parley/cluster"
)

// In a Byzantine group of four, two members at a time, or all, are closed and rejoin, twice. The order continues,
// and is the same at all members.
func TestByzantineGroupBeginsAgain(t *testing.T) {
	each(t, func(t *testing.T, count int) {
		var mu sync.Mutex
		places := make(map[uint64]string) // since the last time that all were closed
		saw := make([]map[string]bool, 4)
		life := 0 // incremented then
		configs := make([]cluster.Config, 4)
		group := func(i, mine int) []cluster.GroupConfig {
			saw[i] = make(map[string]bool)
			return []cluster.GroupConfig{{Name: "g", Level: cluster.Byzantine, Deliver: func(d cluster.Delivery) {
				mu.Lock()
				defer mu.Unlock()
				what := fmt.Sprintf("%d:%s", d.From, d.Payload)
				saw[i][what] = true
				if was := places[d.Position]; mine == life && was != "" && was != what {
					t.Errorf("node %d delivers %s at %d, and another one %s", i, what, d.Position, was)
				}
				if mine == life {
					places[d.Position] = what
				}
			}}}
		}
		nodes := joined(t, 4, func(i int, c *cluster.Config) {
			onDisk(c, false)
			c.Times, c.Round, c.Groups = hasty, 250*time.Millisecond, group(i, 0)
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
		// A payload broadcast while a node is out is not delivered there: the sender repeats with another one.
		say := func(i int, what string) {
			t.Helper()
			for k, until := 0, time.Now().Add(30*time.Second); time.Now().Before(until); k++ {
				one := fmt.Sprint(what, " ", k)
				if nodes[i].Group("g").BroadcastAsync([]byte(one)) != nil { // while the sender itself is out
					time.Sleep(20 * time.Millisecond)
					continue
				}
				has := all(fmt.Sprintf("%d:%s", i, one))
				for limit := time.Now().Add(2 * time.Second); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
					if has() {
						return
					}
				}
			}
			t.Fatalf("%s of %d is not delivered by all", what, i)
		}
		say(3, "first")
		for round := range 2 {
			for i := range count {
				must(t, nodes[i].Close())
			}
			mu.Lock()
			if count == 4 {
				life++
				clear(places)
			}
			for i := range count {
				configs[i].Groups = group(i, life)
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
			for i := range 4 {
				say(i, fmt.Sprint("again ", round))
			}
			t.Log("round", round, time.Since(began))
		}
	}, 2, 4)
}
