package cluster_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/cluster"
	"parley/cluster/host"
	"parley/faulty"
)

// Cycles take place at their times, by the clock that the nodes keep together although their
// own differ: all correct nodes get the same vector of one, with the value of each of them,
// whatever the liar says.
func TestCycles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const every = 500 * time.Millisecond
		nodes := joined(t, 4, func(i int, c *cluster.Config) {
			c.Round, c.Clocks = 150*time.Millisecond, cluster.ClockConfig{Error: 3 * time.Millisecond}
			c.Cycles = []cluster.CycleConfig{{Name: "sample", Every: every}}
			c.Clock = host.Skewed{Clock: host.NewElapsed(), Offset: 1e9, Drift: int64(50 - 30*i)}
			if i == 3 {
				c.Lab = &cluster.Lab{Traitor: faulty.TwoFaced}
			}
		})
		for i, node := range nodes[:3] {
			if err := node.Cycle("sample").Set(fmt.Append(nil, "value ", i)); err != nil {
				t.Fatal(err)
			}
		}
		synchronized(t, nodes[:3]...)
		seen := make(map[uint64]map[string]int) // how many nodes got a vector, by slot
		shared := 0
		for after, tries := make([]uint64, 3), 0; shared < 3 && tries < 40; tries++ {
			for i, node := range nodes[:3] {
				v, err := node.Cycle("sample").Next(t.Context(), after[i])
				if err != nil {
					continue // on a busy machine messages may be too slow
				}
				after[i] = v.Slot
				text := fmt.Sprintf("%s", v.Values[:3]) + fmt.Sprintf("%q", v.Values[3])
				if seen[v.Slot] == nil {
					seen[v.Slot] = make(map[string]int)
				}
				seen[v.Slot][text]++
				if len(seen[v.Slot]) > 1 {
					t.Fatalf("cycle %d: %v", v.Slot, seen[v.Slot])
				}
				if seen[v.Slot][text] == 3 && strings.HasPrefix(text, "[value 0 value 1 value 2]") {
					shared++
				}
				if off := node.Clock().Time.Sub(time.Unix(0, int64(v.Slot)*int64(every))); off < 0 {
					t.Errorf("cycle %d is over %v before it begins", v.Slot, -off)
				}
			}
		}
		if shared < 3 {
			t.Errorf("only %d cycles in which all three took part: %v", shared, seen)
		}
	})
}

// A cycle whose rounds have no room for what may be between the clocks does not begin.
func TestCyclesRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, c := range map[string]struct {
			clocks cluster.ClockConfig
			cycle  cluster.CycleConfig
		}{
			"a round of 100ms is too short": {
				cluster.ClockConfig{Error: 20 * time.Millisecond}, cluster.CycleConfig{Name: "c", Every: time.Second},
			},
			"every 150ms: its 2 rounds, and one to spare, take 300ms": {
				cluster.ClockConfig{}, cluster.CycleConfig{Name: "c", Every: 150 * time.Millisecond},
			},
			"what is signed in one cycle would count in all": {
				cluster.ClockConfig{}, cluster.CycleConfig{Name: "c", Every: time.Second, Algorithm: cluster.SM},
			},
		} {
			config := cluster.Config{Members: make([]cluster.Member, 4), Clocks: c.clocks, Cycles: []cluster.CycleConfig{c.cycle}}
			err := config.CheckCycles()
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, and not %q", err, want)
			}
		}
	})
}
