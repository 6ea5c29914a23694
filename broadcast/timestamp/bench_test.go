package timestamp_test

import (
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/broadcast/timestamp"
	"parley/membership/group"
	"parley/sim"
	"parley/trace"
)

// busy makes each member broadcast the same few bytes in turn, and counts deliveries.
func busy(c timestamp.Config, many int, every parley.Tick, delivered *int) sim.Options {
	k, body := 0, []byte("something")
	return sim.Options{
		Protocol: timestamp.New(c), FIFO: true, Delay: sim.Delay{Least: 50, Most: 100},
		Until: parley.Tick(many)*every + 20_000,
		More: func() (sim.Request, bool) {
			k++
			r := sim.Request{At: parley.ID(k % c.N), When: parley.Tick(k) * every, Msg: problem.Request(body)}
			return r, k <= many
		},
		Observe: func(op trace.Op, _ parley.ExternalEvent) {
			if op == trace.Deliver {
				*delivered++
			}
		},
	}
}

// BenchmarkBroadcasts makes four members broadcast as fast as the window allows, with acknowledgements one by
// one and in batches.
func BenchmarkBroadcasts(b *testing.B) {
	const many = 20_000
	for _, x := range []struct {
		name string
		hold parley.Tick
	}{{"single", 0}, {"batch", 50}} {
		b.Run(x.name, func(b *testing.B) {
			b.ReportAllocs()
			var s sim.Sim
			for b.Loop() {
				delivered := 0
				s.Reset(busy(timestamp.Config{Config: group.Config{N: 4}, Hold: x.hold}, many, 2, &delivered))
				s.Run()
				if delivered != 4*many {
					b.Fatal(delivered)
				}
			}
			b.ReportMetric(float64(b.N*many)/b.Elapsed().Seconds(), "broadcasts/s")
		})
	}
}
