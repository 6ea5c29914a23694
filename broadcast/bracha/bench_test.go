package bracha_test

import (
	"testing"

	"parley"
	"parley/broadcast/bracha"
	"parley/broadcast/problem"
	"parley/sim"
)

// BenchmarkDeliveries makes each of 31 processes broadcast once: 58,590 messages delivered to machines per
// run.
func BenchmarkDeliveries(b *testing.B) {
	const n = 31
	for _, x := range []struct {
		name  string
		delay sim.Delay
	}{{"unit", sim.Delay{Least: 1, Most: 1}}, {"random", sim.Delay{Least: 1, Most: 64}}} {
		b.Run(x.name, func(b *testing.B) {
			p := bracha.New(bracha.Config{N: n, M: (n - 1) / 3})
			inner, made, fresh := p.New, make([]parley.Machine, n), []byte(nil)
			p.New = func(self parley.ID) parley.Machine { // made once, and reset for the next run
				if made[self] == nil {
					made[self] = inner(self)
				}
				parley.Load(made[self], 0, fresh)
				return made[self]
			}
			fresh = parley.Save(inner(0), 0, nil)
			opt := sim.Options{Protocol: p, Delay: x.delay}
			for id := range parley.ID(n) {
				opt.Requests = append(opt.Requests, sim.Request{At: id, Msg: problem.Request([]byte{byte(id)})})
			}
			s := sim.New(opt)
			b.ReportAllocs()
			var deliveries uint64
			for b.Loop() {
				s.Reset(opt)
				s.Run()
				opt.Seed++
				deliveries += s.Stats.Deliveries
				if s.Stats.Deliveries != n*(n-1)*(1+2*n) || len(s.History.Deliveries) != n*n {
					b.Fatal(s.Stats.Deliveries, len(s.History.Deliveries))
				}
			}
			b.ReportMetric(float64(deliveries)/b.Elapsed().Seconds(), "deliveries/s")
		})
	}
}
