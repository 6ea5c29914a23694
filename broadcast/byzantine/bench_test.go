package byzantine_test

import (
	"bytes"
	"fmt"
	"testing"

	"parley"
	"parley/broadcast/byzantine"
	"parley/broadcast/problem"
	"parley/sim"
	"parley/trace"
)

// BenchmarkOrder orders requests of 64 bytes, a given number per message delay at each of four processes, all correct:
// one operation is one request, delivered everywhere.
func BenchmarkOrder(b *testing.B) {
	for _, each := range []int{1, 16, 128} {
		b.Run(fmt.Sprintf("n=4/each=%d", each), func(b *testing.B) {
			payload := bytes.Repeat([]byte("x"), 64)
			asked, delivered := 0, 0
			b.ReportAllocs()
			s := sim.Run(sim.Options{
				Protocol: byzantine.New(byzantine.Config{N: 4, M: 1}),
				Delay:    sim.Delay{Least: 100, Most: 100},
				More: func() (sim.Request, bool) {
					asked++
					return sim.Request{At: parley.ID(asked % 4), When: 100 * parley.Tick(asked/(4*each)),
						Msg: problem.Request(payload)}, asked <= b.N
				},
				Observe: func(op trace.Op, _ parley.ExternalEvent) {
					if op == trace.Deliver {
						delivered++
					}
				},
			})
			if delivered != 4*b.N {
				b.Errorf("%d requests, %d deliveries: %v", b.N, delivered, s.Stats.Refused)
			}
		})
	}
}
