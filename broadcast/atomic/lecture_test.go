package atomic_test

import (
	"math/rand/v2"
	"testing"

	"parley"
	"parley/broadcast/atomic"
	"parley/broadcast/problem"
	"parley/sim"
)

// Total order, agreement, validity and integrity hold among correct processes, pairwise for receivers that
// overlap, with up to n-1 crashes: in whatever order messages arrive, some of them twice, and however early a
// crash is indicated. Uniform total order, which is not promised, breaks in some run.
func TestPromises(t *testing.T) {
	delivered, apart := 0, 0
	for seed := range uint64(6000) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 2 + int(seed%4)
		p := atomic.New(atomic.Config{N: n, Detector: true})
		opt := sim.Options{Protocol: p, Seed: seed, FIFO: seed%3 == 0, Requests: named(n)(r)}
		if seed%3 == 1 {
			opt.Twice = 0.2
		}
		for _, id := range r.Perm(n)[:r.IntN(n)] {
			crash := sim.Crash{At: parley.ID(id), When: parley.Tick(r.IntN(4000)), Effects: r.IntN(n + 1)}
			opt.Crashes = append(opt.Crashes, crash)
			for at := range parley.ID(n) {
				opt.Suspicions = append(opt.Suspicions,
					sim.Suspicion{At: at, Of: crash.At, When: crash.When + 1 + parley.Tick(r.IntN(2000))})
			}
		}
		s := sim.Run(opt)
		if err := broken(p, &s.History, promised); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if problem.Of(problem.Delivery)[0].Check(&s.History) == nil {
			delivered++
		}
		if problem.Of(problem.UniformTotalOrder)[0].Check(&s.History) != nil {
			apart++
		}
	}
	if delivered < 4000 || apart == 0 {
		t.Errorf("something was delivered in %d runs, in different orders in %d", delivered, apart)
	}
}

// Links that lose messages may delay deliveries, but change no order.
func TestOrderWithLosses(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		n := 2 + int(seed%4)
		p := atomic.New(atomic.Config{N: n, Detector: true})
		opt := sim.Options{Protocol: p, Seed: seed, Loss: 0.05, Detect: 1, Requests: named(n)(r)}
		opt.Crashes = []sim.Crash{{At: parley.ID(r.IntN(n)), When: parley.Tick(r.IntN(3000)), Effects: r.IntN(n)}}
		s := sim.Run(opt)
		if err := broken(p, &s.History, []string{problem.Integrity, problem.TotalOrder}); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}
