package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"parley/cluster"
)

// usual sets the default times, with which a silent node is suspected after 1 s.
func usual(c *cluster.Config) {
	c.Times = cluster.Times{}
	c.Groups = []cluster.GroupConfig{{Name: "g", Level: cluster.Total}}
}

// broadcast returns how long a node takes to deliver its own payload.
func broadcast(t *testing.T, r *rig, i int) time.Duration {
	t.Helper()
	ctx := soon(t, 10*time.Second)
	began := time.Now()
	if _, err := r.nodes[i].Load().Group("g").Broadcast(ctx, []byte("payload")); err != nil {
		t.Fatalf("node %d: %v", i, err)
	}
	return time.Since(began)
}

// A killed node, whichever it was, costs the others a few milliseconds: they detect at once that their
// connections broke.
func TestKilledNodeIsSuspectedAtOnce(t *testing.T) {
	for _, n := range []int{3, 5} {
		for killed := range n {
			t.Run(fmt.Sprint(killed, " of ", n), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					r := newRig(t, n, usual)
					asked := (killed + 1) % n
					broadcast(t, r, asked)
					r.cut(killed) // nothing answers there any more
					for _, other := range r.others(killed) {
						r.network.Break(r.host(killed), other)
					}
					if took := broadcast(t, r, asked); took > 20*time.Millisecond {
						t.Errorf("the next payload takes %v", took)
					}
					r.heal(killed)
				})
			})
		}
	}
}

// A link that breaks repeatedly ends no view as long as no message is lost: its nodes reconnect.
func TestLinkThatFlapsEndsNoView(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 3, usual)
		hosts := r.others(-1)
		for range 50 {
			time.Sleep(300 * time.Millisecond)
			r.network.Break(hosts[0], hosts[2])
			time.Sleep(300 * time.Millisecond)
			broadcast(t, r, 1)
		}
		for i := range r.nodes {
			for _, v := range views(r.nodes[i].Load()) {
				if v.View != 1 || len(v.Members) != 3 {
					t.Errorf("node %d is in view %d with %v", i, v.View, v.Members)
				}
			}
		}
	})
}

// A link that breaks with messages in flight ends a view, and all nodes are in the next one at once.
func TestLinkThatFlapsUnderLoad(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 3, usual)
		hosts := r.others(-1)
		for k := range 500 {
			if k%20 == 0 {
				time.Sleep(600 * time.Millisecond)
				r.network.Break(hosts[0], hosts[2])
			}
			if took := broadcast(t, r, k%3); took > 30*time.Millisecond {
				t.Errorf("payload %d takes %v", k, took)
			}
			time.Sleep(time.Millisecond)
		}
		for i := range r.nodes {
			for _, v := range views(r.nodes[i].Load()) {
				if len(v.Members) != 3 {
					t.Errorf("node %d is in view %d with %v", i, v.View, v.Members)
				}
			}
		}
	})
}
