package phaseking_test

import (
	"fmt"
	"testing"

	"parley"
	"parley/agreement/phaseking"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
)

// BenchmarkRun is a whole simulated run with m faulty processes among the first kings and
// others, at one tick per message: n(n-1) frames in each of 3(m+1) rounds.
func BenchmarkRun(b *testing.B) {
	for _, nm := range [][2]int{{4, 1}, {13, 4}, {31, 10}, {100, 33}} {
		for _, how := range []faulty.Behavior{faulty.Honest, faulty.TwoFaced, faulty.Random} {
			b.Run(fmt.Sprintf("n=%d,m=%d/%s", nm[0], nm[1], how.Name), func(b *testing.B) {
				c := phaseking.Config{Instance: problem.Instance{N: nm[0], M: nm[1], Default: []byte("0")}}
				liars := map[parley.ID]faulty.Behavior{}
				for i := range parley.ID(nm[1]) {
					liars[i] = how
				}
				var requests []sim.Request
				for i := range parley.ID(c.N) {
					v := []byte{'0' + byte(i%2)}
					requests = append(requests, sim.Request{At: i, Msg: parley.Msg{Kind: parley.Propose, Body: v}})
				}
				b.ReportAllocs()
				var frames, seed uint64
				for b.Loop() {
					seed++
					s := sim.Run(sim.Options{
						Protocol: phaseking.New(c, lockstep.Simulated), Faulty: liars, Requests: requests,
						Seed: seed, Delay: sim.Delay{Least: 1, Most: 1},
					})
					frames += s.Stats.Deliveries
				}
				b.ReportMetric(float64(frames)/b.Elapsed().Seconds()/1e6, "Mframes/s")
			})
		}
	}
}
