package atomic_test

import (
	"math/rand/v2"
	"testing"

	"parley/broadcast/problem"
)

// Total order, agreement, validity and integrity among correct processes, pairwise
// for receivers that overlap, with up to n-1 crashes: in whatever order messages
// come, and however early a crash is told of.
func TestPromises(t *testing.T) {
	for name, o := range map[string]weather{
		"calm":      {casts: 6, crashes: 0},
		"crashes":   {casts: 5, crashes: 4},
		"reordered": {casts: 5, crashes: 4, reorder: true},
		"early":     {casts: 5, crashes: 4, reorder: true, early: true},
		"twice":     {casts: 5, crashes: 3, twice: 0.2},
		"broadcast": {casts: 6, crashes: 4, broadcast: true},
	} {
		t.Run(name, func(t *testing.T) {
			delivered := 0
			for seed := range uint64(1500) {
				w := newWorld(t, 2+int(seed%4))
				w.run(rand.New(rand.NewPCG(seed, 1)), o)
				if err := w.check(promised...); err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				if w.check(problem.Delivery) == nil {
					delivered++
				}
			}
			if delivered < 1000 {
				t.Errorf("something was delivered in %d runs", delivered)
			}
		})
	}
}

// Links that lose messages may hold up deliveries, and change no order.
func TestOrderWithLosses(t *testing.T) {
	for seed := range uint64(1000) {
		w := newWorld(t, 2+int(seed%4))
		w.run(rand.New(rand.NewPCG(seed, 1)), weather{casts: 6, crashes: 2, loss: 0.05, reorder: true})
		if err := w.check(problem.Integrity, problem.TotalOrder); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// What is not promised is not kept either: processes that crash deliver in another
// order than those who live, in runs in which all that is promised holds.
func TestNotUniformIsFound(t *testing.T) {
	for seed := range uint64(5000) {
		w := newWorld(t, 3)
		w.run(rand.New(rand.NewPCG(seed, 4)), weather{casts: 10, crashes: 2, broadcast: true})
		if err := w.check(promised...); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := w.check(problem.UniformTotalOrder); err != nil {
			t.Logf("seed %d: %v", seed, err)
			return
		}
	}
	t.Error("uniform total order was never broken")
}

// Beyond the model: with one false suspicion agreement, total order and validity
// among correct processes all break, in runs that are like those of TestPromises
// otherwise.
func TestOneFalseSuspicionIsFound(t *testing.T) {
	broken := make(map[string]int)
	for seed := range uint64(2000) {
		w := newWorld(t, 3+int(seed%2))
		w.run(rand.New(rand.NewPCG(seed, 5)), weather{casts: 6, crashes: 1, mistaken: 1, reorder: true})
		for _, name := range promised {
			if w.check(name) != nil {
				broken[name]++
			}
		}
	}
	t.Logf("broken, by property: %v", broken)
	for _, name := range []string{problem.Agreement, problem.TotalOrder, problem.Validity} {
		if broken[name] == 0 {
			t.Errorf("%s was never broken", name)
		}
	}
	if broken[problem.Integrity] > 0 {
		t.Error("integrity was broken, which is promised even so")
	}
}
