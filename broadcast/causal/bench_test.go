package causal_test

import (
	"fmt"
	"testing"

	"parley"
	"parley/broadcast/causal"
	"parley/broadcast/diffusion"
	"parley/broadcast/fifo"
	"parley/broadcast/problem"
	"parley/sim"
)

// One broadcast by each of ten processes every 100 ticks, with delays of 1 to 900.
func BenchmarkTowers(b *testing.B) {
	const n, rounds = 10, 50
	var requests []sim.Request
	for k := range rounds {
		for id := range parley.ID(n) {
			requests = append(requests, sim.Request{At: id, When: parley.Tick(100 * k),
				Msg: problem.Request(fmt.Appendf(nil, "%d.%d", id, k))})
		}
	}
	c := diffusion.Config{N: n}
	uniform := diffusion.Config{N: n, Uniform: true}
	for _, p := range []struct {
		name string
		p    parley.Protocol
	}{
		{"diffusion", diffusion.New(c)}, {"uniform", diffusion.New(uniform)}, {"fifo", fifo.Tower(c)},
		{"piggyback", causal.Tower(causal.Piggyback, c)}, {"vector", causal.Tower(causal.Vector, c)},
	} {
		b.Run(p.name, func(b *testing.B) {
			var s sim.Sim
			received := uint64(0)
			for b.Loop() {
				s.Reset(sim.Options{Protocol: p.p, Seed: 1, Requests: requests})
				s.Run()
				received += s.Stats.Deliveries
			}
			b.ReportMetric(float64(received)/b.Elapsed().Seconds(), "messages/s")
		})
	}
}
