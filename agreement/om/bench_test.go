package om_test

import (
	"fmt"
	"testing"

	"parley"
	"parley/agreement/om"
	"parley/lockstep"
	"parley/sim"
)

// BenchmarkHonest runs the whole system in the simulator, without faults.
func BenchmarkHonest(b *testing.B) {
	for _, size := range [][2]int{{4, 1}, {7, 2}, {10, 3}, {13, 4}, {16, 5}} {
		n, m := size[0], size[1]
		b.Run(fmt.Sprintf("n=%d/m=%d", n, m), func(b *testing.B) {
			p := om.New(om.Config{N: n, M: m, Default: []byte("0")}, lockstep.Simulated)
			start := []sim.Request{{Msg: parley.Msg{Kind: parley.Propose, Body: []byte("1")}}}
			b.ReportAllocs()
			for b.Loop() {
				sim.Run(sim.Options{Protocol: p, Requests: start})
			}
			b.ReportMetric(float64(om.Cost(n, m).Total().Messages), "messages")
		})
	}
}
