package convergence

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
)

// oracle computes the mean of the differences with big rationals.
func oracle(own int, differences []parley.Tick, read parley.Set, delta parley.Tick) *big.Rat {
	sum := new(big.Rat)
	for i, d := range differences {
		x := new(big.Rat).SetInt64(int64(d))
		if i != own && read.Has(parley.ID(i)) && new(big.Rat).Abs(x).Cmp(new(big.Rat).SetInt64(int64(delta))) <= 0 {
			sum.Add(sum, x)
		}
	}
	return sum.Quo(sum, new(big.Rat).SetInt64(int64(len(differences))))
}

// nearest rounds to the nearest whole number, a half up.
func nearest(x *big.Rat) parley.Tick {
	twice := new(big.Rat).Add(x, big.NewRat(1, 2))
	q := new(big.Int).Div(twice.Num(), twice.Denom()) // Euclidean: down, for a positive divisor
	return parley.Tick(q.Int64())
}

// Both forms against the oracle, exact and rounded, at small and at enormous times.
func TestMeansAgainstOracle(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 20_000 {
		n := 1 + r.IntN(9)
		own := r.IntN(n)
		delta := parley.Tick(r.IntN(40))
		here := []parley.Tick{0, 1000, -7, 1 << 61, -(1 << 61)}[r.IntN(5)]
		differences, values := make([]parley.Tick, n), make([]parley.Tick, n)
		var read parley.Set
		for i := range n {
			if i != own {
				differences[i] = parley.Tick(r.IntN(101) - 50)
			}
			values[i] = here + differences[i]
			if r.IntN(8) > 0 {
				read.Add(parley.ID(i))
			}
		}
		want := oracle(own, differences, read, delta)
		byDifferences := meanOf(parley.ID(own), 0, differences, read, delta)
		byValues := meanOf(parley.ID(own), values[own], values, read, delta)
		exact := new(big.Rat).Add(big.NewRat(int64(byDifferences.rest), int64(n)),
			new(big.Rat).SetInt64(int64(byDifferences.whole)))
		if exact.Cmp(want) != 0 || byDifferences.rest < 0 || byDifferences.rest >= n {
			t.Fatalf("own %d of %v, read %v, delta %d: %+v, and not %s", own, differences, read, delta, byDifferences, want)
		}
		if byDifferences.rounded() != nearest(want) {
			t.Fatalf("%s is rounded to %d", want, byDifferences.rounded())
		}
		byValues.whole -= here
		if byValues != byDifferences {
			t.Fatalf("the mean of values is %+v and that of differences %+v", byValues, byDifferences)
		}
	}
}

// Rounding is to the nearest tick, and a half is rounded up, also below zero: the result does not depend on
// where zero is.
func TestRounding(t *testing.T) {
	for _, c := range []struct {
		sum  parley.Tick
		n    int
		want parley.Tick
	}{
		{0, 4, 0}, {1, 4, 0}, {2, 4, 1}, {3, 4, 1}, {4, 4, 1}, {5, 4, 1}, {6, 4, 2},
		{-1, 4, 0}, {-2, 4, 0}, {-3, 4, -1}, {-4, 4, -1}, {-5, 4, -1}, {-6, 4, -1}, {-7, 4, -2},
		{1, 3, 0}, {2, 3, 1}, {-1, 3, 0}, {-2, 3, -1},
	} {
		differences := make([]parley.Tick, c.n)
		differences[c.n-1] = c.sum
		got := meanOf(0, 0, differences, parley.Everyone(c.n), 100)
		if got.rounded() != c.want {
			t.Errorf("%d/%d is rounded to %d, not %d", c.sum, c.n, got.rounded(), c.want)
		}
	}
	for _, c := range [][2]parley.Tick{{0, 0}, {1, 1}, {2, 1}, {3, 2}, {-1, 0}, {-2, -1}, {-3, -1}} {
		if got := offset(0, c[0], 0, 0); got != c[1] {
			t.Errorf("half of %d is rounded to %d, not %d", c[0], got, c[1])
		}
	}
}

// A peer may show any time: none is accepted because of an overflow.
func TestEnormousReadings(t *testing.T) {
	for _, x := range []parley.Tick{math.MaxInt64, math.MinInt64, math.MinInt64 + 1, 1 << 62} {
		got := meanOf(0, 0, []parley.Tick{0, 4, x}, parley.Everyone(3), 10)
		if got != (mean{whole: 1, rest: 1, n: 3, kept: 2}) {
			t.Errorf("with a difference of %d the mean is %+v", x, got)
		}
		got = meanOf(0, -100, []parley.Tick{-100, -96, x}, parley.Everyone(3), 10)
		if got != (mean{whole: -99, rest: 1, n: 3, kept: 2}) {
			t.Errorf("with a value of %d the mean is %+v", x, got)
		}
	}
}

// A reading of a clock that is x ahead, with delays a there and b back, is wrong by (a-b)/2: at most half of
// the excess of the round trip over the shortest one.
func TestOffset(t *testing.T) {
	const least = 3
	count := 0
	for there := parley.Tick(least); there < 20; there++ {
		for back := parley.Tick(least); back < 20; back++ {
			for x := parley.Tick(-9); x <= 9; x++ {
				t1 := parley.Tick(1000)
				t4 := t1 + there + 5 + back
				got := offset(t1, t1+there+x, t1+there+5+x, t4)
				if 2*got != 2*x+there-back && 2*got != 2*x+there-back+1 {
					t.Fatalf("a clock %d ahead is read as %d ahead, with delays %d and %d", x, got, there, back)
				}
				if wrong := max(got-x, x-got); 2*wrong > there+back-2*least+1 {
					t.Fatalf("the reading is wrong by %d, with delays %d and %d", wrong, there, back)
				}
				count++
			}
		}
	}
	if count != 17*17*19 {
		t.Errorf("%d readings", count)
	}
}

// With 2m+1 readings, m of them wrong, the median lies between two right ones.
func TestMedian(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for range 5000 {
		m := r.IntN(4)
		n := 2*m + 1 + r.IntN(3)
		differences := make([]parley.Tick, n+1)
		least, most := parley.Tick(math.MaxInt64), parley.Tick(math.MinInt64)
		var read parley.Set
		for i, k := range r.Perm(n) {
			read.Add(parley.ID(k))
			differences[k] = parley.Tick(r.IntN(20))
			if i < m {
				differences[k] = parley.Tick(r.IntN(2000) - 1000)
				continue
			}
			least, most = min(least, differences[k]), max(most, differences[k])
		}
		differences[n] = -1 << 60 // not read
		if got := median(differences, read); got < least || got > most {
			t.Fatalf("the median of %v is %d: not in %d..%d", differences, got, least, most)
		}
	}
}

// The theorem's delta with eps 0.5 ms, rho 100 parts in a million and R 10 s.
func TestTheoremFigures(t *testing.T) {
	const ms = 1_000_000
	for _, c := range []struct {
		n, m  int
		delta parley.Tick
	}{{4, 1, 11 * ms}, {7, 2, 20 * ms}, {10, 3, 29 * ms}} {
		if got := theorem(c.n, c.n-3*c.m, ms/2, 100, 10_000*ms); got != c.delta {
			t.Errorf("n = %d, m = %d: %d, not %d", c.n, c.m, got, c.delta)
		}
	}
	// n = 3m+1: nearly 2n eps without drift.
	if got := theorem(16, 1, 1000, 0, 1<<40); got != 2*15*1000 {
		t.Error(got)
	}
	// Rounded up: 2*5*2/3 of n = 3, m = 0.
	if got := theorem(3, 3, 5, 0, 1); got != 7 {
		t.Error(got)
	}
}

// rounds simulates the worst adversary against two correct clocks, the fastest and the slowest, with the
// others between them, and returns the difference of the two before each resynchronization. Each reading of a
// correct clock is wrong by eps in the worst direction, and each liar shows each of the two a time just within
// the threshold.
func rounds(n, m int, eps, delta, drift parley.Tick, howMany int) []parley.Tick {
	threshold := delta + eps
	var skew parley.Tick
	var all []parley.Tick
	for range howMany {
		skew += drift
		all = append(all, skew)
		fast, slow := make([]parley.Tick, n), make([]parley.Tick, n) // what the two read
		for i := 2; i < n; i++ {
			fast[i], slow[i] = -skew/2+eps, skew-skew/2-eps
			if i >= n-m {
				fast[i], slow[i] = threshold, -threshold
			}
		}
		fast[1], slow[0] = -skew+eps, skew-eps
		up := meanOf(0, 0, fast, parley.Everyone(n), threshold)
		down := meanOf(1, 0, slow, parley.Everyone(n), threshold)
		skew += up.rounded() - down.rounded()
	}
	return all
}

// The theorem is tight: the worst adversary reaches delta, and never more.
func TestBoundIsReached(t *testing.T) {
	const ms = 1_000_000
	for _, c := range []struct{ n, m int }{{4, 1}, {7, 2}, {10, 3}, {5, 1}, {16, 5}} {
		delta := theorem(c.n, c.n-3*c.m, ms/2, 100, 10_000*ms)
		all := rounds(c.n, c.m, ms/2, delta, 2*ms, 400)
		rounding := parley.Tick(c.n) // one tick for each round, n/(n-3m) times
		if most := slices.Max(all); most > delta+rounding || most < delta-rounding {
			t.Errorf("n = %d, m = %d: the clocks come %d apart, and delta is %d", c.n, c.m, most, delta)
		}
	}
}

// With n = 3m nothing keeps them together: 3.9 s apart after 400 rounds.
func TestDivergesAtThreeM(t *testing.T) {
	const ms = 1_000_000
	all := rounds(3, 1, ms/2, 11*ms, 2*ms, 400)
	if last := all[399]; last < 3850*ms || last > 3950*ms {
		t.Errorf("%d ms apart after 400 rounds", last/ms)
	}
	if !slices.IsSorted(all) {
		t.Error("they came closer")
	}
}

// "The averages computed by p and q differ by at most (3m/n) delta": every case of n = 4 and m = 1 with three
// clocks in 0..3, delta = 3, and everything that a liar may show.
func TestFactorExhaustive(t *testing.T) {
	const delta = 3
	cases, worst := 0, parley.Tick(0)
	means := func(own int, clocks [3]parley.Tick) (all []parley.Tick) {
		for lie := parley.Tick(-4); lie <= 7; lie++ {
			m := meanOf(parley.ID(own), clocks[own], append(clocks[:], lie), parley.Everyone(4), delta)
			all = append(all, 4*m.whole+parley.Tick(m.rest))
		}
		return all
	}
	for x := range 4 * 4 * 4 {
		clocks := [3]parley.Tick{parley.Tick(x % 4), parley.Tick(x / 4 % 4), parley.Tick(x / 16)}
		for _, p := range means(0, clocks) {
			for _, q := range means(1, clocks) {
				cases++
				worst = max(worst, p-q, q-p)
			}
		}
	}
	if cases != 64*12*12 || worst != 3*delta { // 4 means are 3 delta apart: 3m/n
		t.Errorf("%d cases, the worst %d/4 apart", cases, worst)
	}
}
