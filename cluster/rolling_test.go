package cluster_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"parley/cluster"
	"parley/replica/keyvalue"
)

// Nodes are replaced one by one by nodes that support the next wire version, and then again, while clients
// continue: nothing acknowledged is lost or applied twice. Two nodes use the highest common version.
func TestRollingUpgrade(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, 3, func(c *cluster.Config) {
			withTable(true)(c)
			c.Test().WireMin, c.Test().WireMax = 1, 1
		})
		upgrade := func(i int, least, most uint16) func() {
			return func() {
				r.stop(i)
				r.configs[i].Test().WireMin, r.configs[i].Test().WireMax = least, most
				r.start(i)
				r.back(i)
			}
		}
		speaks := func(want ...[3]uint16) func() {
			return func() {
				for _, w := range want {
					if got := r.nodes[w[0]].Load().WireVersion(int(w[1])); got != w[2] {
						t.Errorf("nodes %d and %d speak version %d, not %d", w[0], w[1], got, w[2])
					}
				}
			}
		}
		load(t, r, 8, 3000,
			speaks([3]uint16{0, 1, 1}, [3]uint16{1, 2, 1}),
			upgrade(0, 1, 2), speaks([3]uint16{0, 1, 1}, [3]uint16{0, 2, 1}),
			upgrade(1, 1, 2), speaks([3]uint16{0, 1, 2}, [3]uint16{1, 2, 1}),
			upgrade(2, 1, 2), speaks([3]uint16{0, 1, 2}, [3]uint16{1, 2, 2}, [3]uint16{2, 0, 2}),
			upgrade(2, 2, 3), upgrade(1, 2, 3), speaks([3]uint16{1, 2, 3}, [3]uint16{0, 1, 2}),
			upgrade(0, 2, 3), speaks([3]uint16{0, 1, 3}, [3]uint16{0, 2, 3}),
		)
	})
}

// A node whose disk fails reports it, and acknowledges nothing from then on. Restarted on a working disk it
// continues, and nothing is lost.
func TestDiskFailsUnderANode(t *testing.T) {
	bubble(t, func(t *testing.T) {
		d := new(brittle)
		broken := make(chan error, 10)
		r := configured(t, 3, func(i int, c *cluster.Config) {
			if withTable(true)(c); i == 0 {
				d.Disk = c.Disk
				c.Disk = d.disk()
				c.Broken = func(err error) { broken <- err }
			}
		}).begin()
		load(t, r, 8, 1500, func() {
			d.failed.Store(true)
			if err := <-broken; !strings.Contains(err.Error(), errBrittle.Error()) {
				t.Errorf("the node breaks for another reason: %v", err)
			}
			node := r.nodes[0].Swap(nil)
			ctx := soon(t, 200*time.Millisecond)
			if _, _, err := node.Table("t").KeyValue().Get(ctx, []byte("counter0")); err == nil || errors.Is(err, keyvalue.ErrMissing) {
				t.Errorf("it answers: %v", err)
			}
			if err := node.Close(); err == nil || !strings.Contains(err.Error(), errBrittle.Error()) {
				t.Errorf("closed: %v", err)
			}
		}, func() {
			r.configs[0].Disk = d.Disk
			r.start(0)
			r.back(0)
		})
		if len(broken) > 0 {
			t.Errorf("it broke again: %v", <-broken)
		}
	})
}
