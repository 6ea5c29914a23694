package mux_test

import (
	"testing"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/interactive"
	"parley/agreement/problem"
	"parley/lockstep"
	"parley/sim"
	"parley/trace"
)

// BenchmarkSlots runs slots one after another at unit delay with all processes correct: one
// operation is one slot at all four.
func BenchmarkSlots(b *testing.B) {
	in := problem.Instance{N: 4, M: 1, Default: []byte("0")}
	for name, p := range map[string]lockstep.Protocol{
		"eig": eig.Rounds(in), "interactive": interactive.Rounds(interactive.Config{Instance: in}),
	} {
		b.Run(name+"/n=4", func(b *testing.B) {
			next, over := uint64(0), 0
			b.ReportAllocs()
			s := sim.Run(sim.Options{
				Protocol: slotsOf(p, lockstep.Called, 8192), Delay: sim.Delay{Least: 1, Most: 1},
				More: func() (sim.Request, bool) {
					next++
					return sim.Request{When: parley.Tick(next), Msg: parley.Msg{Kind: parley.Propose, Seq: next,
						Body: []byte("1")}}, next <= uint64(b.N)
				},
				Observe: func(op trace.Op, _ parley.ExternalEvent) {
					if op == trace.Deliver {
						over++
					}
				},
			})
			if over != 4*b.N {
				b.Errorf("%d slots, and %d decisions: %v", b.N, over, s.Stats.Refused)
			}
		})
	}
}
