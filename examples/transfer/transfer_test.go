package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"parley/cluster/clustertest"
)

// Money neither appears nor vanishes, and no account is overdrawn.
func TestTransfers(t *testing.T) {
	all := opened()
	clustertest.Run(t, 3, all.configure, func(t *testing.T, c *clustertest.Cluster) {
		for k, want := range []bool{true, false, true} { // 70, 70 and 30 of 100
			dollars := []int{69, 69, 29}[k]
			committed, why, err := transfer(t.Context(), c.Node(0), fmt.Sprint(k),
				map[string]int{"node1": -dollars - 1, "node2": dollars, "node3": 1})
			if err != nil || committed != want || !want && why != "node1: not enough money" {
				t.Errorf("%d dollars: %t %q %v", dollars, committed, why, err)
			}
		}
		c.Wait("all to be told", func() bool { return all.sum() == 300 })
		if all["node1"].has() != 0 || all["node2"].has() != 198 || all["node3"].has() != 102 {
			t.Errorf("%d, %d, %d", all["node1"].has(), all["node2"].has(), all["node3"].has())
		}
	})
}

// An unreachable node votes no: the transfer is aborted, and no money is lost.
func TestNodeIsCutOff(t *testing.T) {
	all := opened()
	clustertest.Run(t, 3, all.configure, func(t *testing.T, c *clustertest.Cluster) {
		c.Cut(2)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		committed, _, err := transfer(ctx, c.Node(0), "a", map[string]int{"node1": -10, "node2": 9, "node3": 1})
		if committed || err != nil {
			t.Errorf("committed: %t, %v", committed, err)
		}
		c.Heal(2)
		c.Wait("what was held to be given back", func() bool { return all.sum() == 300 })
	})
}
