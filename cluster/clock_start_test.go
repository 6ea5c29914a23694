package cluster_test

import (
	"fmt"
	"testing"
	"time"

	"parley/cluster"
	"parley/cluster/link/memory"
)

// Five nodes are started together, and the first messages of the others reach two of them about 50 ms too late,
// as on a busy computer. The clocks of these two begin that much later, which is more than the bound and less
// than the threshold. At every millisecond, synchronized clocks are no further apart than their bound, and in the
// end all clocks are synchronized.
func TestClocksOfAStallingStart(t *testing.T) {
	t.Parallel()
	for at := time.Duration(0); at <= 3*time.Millisecond; at += time.Millisecond / 2 {
		for _, length := range []time.Duration{50 * time.Millisecond, 53 * time.Millisecond, 60 * time.Millisecond} {
			t.Run(fmt.Sprintf("%v after %v", length, at), func(t *testing.T) {
				bubble(t, func(t *testing.T) { stallingStart(t, at, length) })
			})
		}
	}
}

// stallingStart holds the messages of three nodes to the other two for the given time.
func stallingStart(t *testing.T, at, length time.Duration) {
	var hosts []*memory.Host
	held := func(hold func(from, to *memory.Host)) {
		for _, from := range []int{0, 1, 3} {
			hold(hosts[from], hosts[2])
			hold(hosts[from], hosts[4])
		}
	}
	begun := time.Now()
	nodes := joined(t, 5, func(_ int, c *cluster.Config) {
		c.Clocks = cluster.ClockConfig{Error: 10 * time.Millisecond}
		if hosts = append(hosts, c.Network.(*memory.Host)); len(hosts) == 5 {
			go func() {
				time.Sleep(at)
				held(hosts[0].Network().Hold)
				time.Sleep(length)
				held(hosts[0].Network().Release)
			}()
		}
	})
	in := 0
	for in < len(nodes) || time.Since(begun) < 8*time.Second {
		if time.Sleep(time.Millisecond); time.Since(begun) > 30*time.Second {
			t.Fatalf("only %d clocks are synchronized", in)
		}
		var said []cluster.Reading
		for _, node := range nodes {
			if r := node.Clock(); r.Synchronized {
				said = append(said, r)
			}
		}
		in = len(said)
		for _, a := range said {
			for _, b := range said {
				if by := a.Time.Sub(b.Time); by > min(a.Bound, b.Bound) {
					t.Fatalf("%v after the start clocks are %v apart, and say %v", time.Since(begun), by, min(a.Bound, b.Bound))
				}
			}
		}
	}
}
