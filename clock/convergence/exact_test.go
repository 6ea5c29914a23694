package convergence_test

import (
	"testing"

	"parley"
	"parley/clock/convergence"
)

// The factor 3m/n holds against delta and for one round: with delta fixed, a faulty clock keeps the skew at
// 2m*delta/(n-m) forever. n = 4, delta = 12.
func TestSkewDoesNotGoToZero(t *testing.T) {
	const rounds, one = 12, parley.Tick(1) << (2 * 12) // divisible by 4 in each round
	const delta = 12 * one
	p, q := parley.Tick(0), delta
	// The clocks are 12, 9, 33/4, 129/16, 513/64, 2049/256 and so on apart.
	for round := range rounds {
		if want := 8*one + 4*one>>(2*round); q-p != want {
			t.Errorf("after %d rounds the clocks are %d ticks apart, not %d", round, q-p, want)
		}
		// s is where p is; r shows each of the two delta too little or too much.
		atP, rest := convergence.Exact(convergence.Values, 0, []parley.Tick{p, q, p, p - delta}, parley.Everyone(4), delta)
		atQ, left := convergence.Exact(convergence.Values, 1, []parley.Tick{p, q, p, q + delta}, parley.Everyone(4), delta)
		if rest != 0 || left != 0 {
			t.Fatalf("round %d: the ticks are not small enough", round)
		}
		p, q = atP, atQ
	}
}

// Both forms, of 1/2, 1/3 and 0, the own clock, in ticks of 1/6 each: the mean is 5/18. A clock that was not
// read counts as the own one.
func TestExact(t *testing.T) {
	readings := []parley.Tick{3, 2, 0}
	if whole, rest := convergence.Exact(convergence.Values, 2, readings, parley.Everyone(3), 3); 3*int(whole)+rest != 5 {
		t.Error(whole, rest)
	}
	if whole, rest := convergence.Exact(convergence.Differences, 2, readings, parley.SetOf(0), 3); 3*int(whole)+rest != 3 {
		t.Error(whole, rest)
	}
}
