package cluster_test

import (
	"testing"
	"time"

	"parley/cluster"
)

// durable returns a durable cluster with a group and two tables: each has views of its own.
func durable(t *testing.T, n int) *rig {
	return newRig(t, n, func(c *cluster.Config) {
		onDisk(c, true)
		c.Groups = []cluster.GroupConfig{{Name: "g"}}
		c.Tables = []cluster.TableConfig{{Name: "t"}, {Name: "u"}}
	})
}

// everywhere reports whether all nodes that are up have all nodes in all their views.
func (r *rig) everywhere() bool {
	for i := range r.nodes {
		node := r.nodes[i].Load()
		if node == nil {
			continue
		}
		for _, v := range views(node) {
			if !v.In || len(v.Members) != len(r.nodes) {
				return false
			}
		}
	}
	return true
}

// A node that reads in its log that an earlier incarnation of another one was expelled does not expel today's.
func TestExpulsionIsNotRepeated(t *testing.T) {
	each(t, func(t *testing.T, n int) {
		r := durable(t, n)
		must(t, r.nodes[1].Load().Expel(soon(t, 20*time.Second), "node3"))
		r.stop(2)
		r.start(2)
		eventually(t, "node3 is back", r.everywhere)
		r.stop(0)
		r.start(0)
		eventually(t, "node1 is back", r.everywhere)
		time.Sleep(4 * quick.Suspect)
		for i := range r.nodes {
			node := r.nodes[i].Load()
			if got := cluster.Shut(node, 2); got != "nothing" || node.Status().State != cluster.Running {
				t.Errorf("node%d has shut node3 out of %s, and is %s", i+1, got, node.Status().State)
			}
		}
		if !r.everywhere() {
			t.Error("node3 is out again")
		}
	}, 3, 4)
}

// A node that was expelled, and stopped before it had heard that from its groups, is a member again after one start.
func TestExpelledUnheardRejoins(t *testing.T) {
	each(t, func(t *testing.T, n int) {
		r := durable(t, n)
		r.cut(2)
		must(t, r.nodes[0].Load().Expel(soon(t, 20*time.Second), "node3"))
		r.stop(2)
		r.heal(2)
		r.start(2)
		within(t, 10*time.Second, "node3 is back", r.everywhere)
		for i := range r.nodes {
			if got := cluster.Shut(r.nodes[i].Load(), 2); got != "nothing" {
				t.Errorf("node%d has shut node3 out of %s", i+1, got)
			}
		}
	}, 3, 4)
}
