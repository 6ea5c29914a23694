package cluster_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"parley/cluster"
)

// The deliveries of durable groups can be read at every node, from their old positions, after a restart of each
// node, and of all.
func TestHistoryOutlivesRestarts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		levels := []cluster.Level{cluster.Total, cluster.Reliable, cluster.Uniform, cluster.FIFO, cluster.Causal, cluster.Atomic}
		r := newRig(t, 3, func(c *cluster.Config) {
			onDisk(c, true)
			for _, level := range levels {
				c.Groups = append(c.Groups, cluster.GroupConfig{Name: level.String(), Level: level})
			}
		})
		ctx := soon(t, 5*time.Minute)
		group := func(i int, level cluster.Level) *cluster.Group { return r.nodes[i].Load().Group(level.String()) }
		again := func(i int, level cluster.Level, what string, try func() error) { // until it is in the group
			err := try()
			for ; errors.Is(err, cluster.ErrNotMember); err = try() {
				time.Sleep(5 * time.Millisecond)
			}
			if err != nil {
				t.Fatalf("%s at node %d: %s: %v", level, i, what, err)
			}
		}
		say := func(i int, level cluster.Level, what string) {
			again(i, level, "broadcast", func() error { return second(group(i, level).Broadcast(ctx, []byte(what))) })
		}
		has := func(i int, level cluster.Level, want map[string]bool) {
			again(i, level, "subscribe", func() error {
				s, err := group(i, level).Subscribe(1)
				seen := make(map[string]bool)
				for err == nil && len(seen) < len(want) {
					var d cluster.Delivery
					if d, err = s.Next(ctx); err == nil {
						seen[string(d.Payload)] = true
					}
				}
				return err
			})
		}
		want := make(map[string]bool)
		for k := range 10 {
			what := fmt.Sprint("m", k)
			want[what] = true
			for _, level := range levels {
				say(k%3, level, what)
			}
		}
		everywhere := func() {
			for i := range 3 {
				for _, level := range levels {
					has(i, level, want)
				}
			}
		}
		for i := range 3 {
			r.stop(i)
			r.start(i)
			everywhere()
			want[fmt.Sprint("after ", i)] = true
			for _, level := range levels {
				say(i, level, fmt.Sprint("after ", i))
			}
		}
		r.stop(0, 1, 2)
		r.start(0, 1, 2)
		everywhere()
	})
}
