package sm_test

import (
	"testing"

	"parley"
	"parley/agreement/sm"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
)

// staircase is a run with the adversary that makes it longest: all m faulty
// processes, including the source, show a new value in every round.
func staircase(n, m int, relay sm.Relay) sim.Options {
	c := config(n, m)
	c.Relay = relay
	p := sm.Rounds(c)
	p.Lies = sm.Staircase(c)
	liars := the(faulty.Script)
	for id := range parley.ID(m) {
		liars[id] = faulty.Script
	}
	return sim.Options{
		Protocol: lockstep.Of(p, lockstep.Simulated), Faulty: liars,
		Requests: propose(c, "1"), Delay: sim.Delay{Least: 1, Most: 1},
	}
}

// TestStaircase: every step of the staircase is accepted, and the last value,
// shown to one process in round m-1, still reaches the others.
func TestStaircase(t *testing.T) {
	for _, x := range []struct{ n, m int }{{4, 1}, {5, 3}, {9, 4}, {12, 10}} {
		s := sim.Run(staircase(x.n, x.m, sm.RelayAll))
		for id := range s.Correct().All() {
			same(t, "values", len(set(s, id)), x.m)
		}
		same(t, "false", s.Stats.Refused["bad-signature"], 0)
		s = sim.Run(staircase(x.n, x.m, sm.RelayTwo))
		for id := range s.Correct().All() {
			same(t, "values", len(set(s, id)), min(2, x.m))
		}
		if !agree(decisions(config(x.n, x.m), s)) {
			t.Errorf("n=%d, m=%d: split", x.n, x.m)
		}
	}
}

func bench(b *testing.B, opt sim.Options) {
	b.ReportAllocs()
	var s *sim.Sim
	for b.Loop() {
		s = sim.Run(opt)
	}
	b.ReportMetric(float64(s.Stats.Deliveries), "frames/op")
	b.ReportMetric(float64(s.Stats.Signs), "signs/op")
	b.ReportMetric(float64(s.Stats.Verifies), "verifies/op")
}

// BenchmarkStaircase: one run of n = 100, m = 98 with ideal tokens.
func BenchmarkStaircase(b *testing.B) {
	b.Run("relay=two", func(b *testing.B) { bench(b, staircase(100, 98, sm.RelayTwo)) })
	b.Run("relay=all", func(b *testing.B) { bench(b, staircase(100, 98, sm.RelayAll)) })
	// Two values with the longest chains, and no other lies.
	b.Run("relay=two,half", func(b *testing.B) { bench(b, staircase(100, 49, sm.RelayTwo)) })
}

// BenchmarkCorrect: the same system without faults.
func BenchmarkCorrect(b *testing.B) {
	opt := staircase(100, 98, sm.RelayTwo)
	opt.Faulty = nil
	bench(b, opt)
}

// BenchmarkEd25519: one run of n = 20, m = 18 with real signatures.
func BenchmarkEd25519(b *testing.B) {
	for _, relay := range []sm.Relay{sm.RelayTwo, sm.RelayAll} {
		b.Run("relay="+relay.String(), func(b *testing.B) {
			opt := staircase(20, 18, relay)
			opt.Signer = sim.Ed25519(1, 20)
			bench(b, opt)
		})
	}
}
