package convergence

import (
	"fmt"
	"math/bits"
	"slices"

	"parley"
)

// Form says which values a process averages.
type Form uint8

// The lecture's two forms. With exact readings at one instant, they give the same result.
const (
	// Differences: a process increments its clock by the mean of the differences of all clocks from its own
	// clock. The differences need not be read at the same instant.
	Differences Form = iota
	// Values: a process sets its clock to the mean of the clock values.
	Values
)

var forms = [...]string{"differences", "values"}

func (f Form) String() string { return forms[f] }

// mean is an exact mean of n clock values or differences: whole + rest/n, with
// rest in 0..n-1.
type mean struct {
	whole   parley.Tick
	rest, n int
	kept    int // how many of the n count as read, including the own one
}

// rounded returns the nearest whole tick; a half is rounded up. Adding a whole number to all entries adds it
// to the result, so the two forms agree after rounding as well, and so do clocks with an offset.
func (m mean) rounded() parley.Tick {
	if 2*m.rest >= m.n {
		return m.whole + 1
	}
	return m.whole
}

// meanOf returns the mean in either of the lecture's forms: of the values of all clocks, where here is the
// value of own's clock, or of their differences from it, where here is 0. In both, here replaces own's entry,
// those that could not be read, and those that are more than delta away. An entry of exactly delta is kept.
// None is clipped to delta, which would be another algorithm. Each entry is divided by itself, because a sum
// could overflow.
func meanOf(own parley.ID, here parley.Tick, entries []parley.Tick, read parley.Set, delta parley.Tick) mean {
	m := mean{n: len(entries)}
	for i, x := range entries {
		switch id := parley.ID(i); {
		case id == own:
			x = here
			m.kept++
		case read.Has(id) && apart(x, here) <= delta:
			m.kept++
		default:
			x = here
		}
		q, r := floorDiv(x, parley.Tick(m.n))
		m.whole, m.rest = m.whole+q, m.rest+int(r)
		if m.rest >= m.n {
			m.whole, m.rest = m.whole+1, m.rest-m.n
		}
	}
	return m
}

// median returns the middle one of the differences that were read, the lower one of two. With at least 2m+1 of
// them, m of them wrong, it lies between two right ones.
func median(differences []parley.Tick, read parley.Set) parley.Tick {
	var sorted []parley.Tick
	for id := range read.All() {
		sorted = append(sorted, differences[id])
	}
	slices.Sort(sorted)
	return sorted[(len(sorted)-1)/2]
}

// offset returns how far another clock is ahead, from one round trip: t1 and t4 are the own clock when the
// question left and when the answer came, t2 and t3 the other clock when the question came and when the answer
// left. Half a tick is rounded up. The error is at most (round trip - 2*least delay)/2, plus the drift of the
// clocks in the meantime. No two of the four may differ by 2^62 or more.
func offset(t1, t2, t3, t4 parley.Tick) parley.Tick {
	return ((t2 - t1) + (t3 - t4) + 1) >> 1
}

// theorem returns the delta of the theorem, rounded up, for n processes of which
// spare = n-3m: correct clocks that are read with an error of at most eps, drift by at
// most rho parts in a million and take the mean every period ticks of the clock are never further apart than
// delta, where
//
//	delta = (2*eps*(n-1)/n + 2*rho*period) * n/(n-3m)
//
// and the threshold delta+eps. The period includes the time of a resynchronization. For each of n-1 others the
// two readings differ by 2 eps, and by another 3 delta for each of m liars; what is left of delta must make up
// for the drift.
//
// Lamport and Melliar-Smith (1985), with the conditions of Rushby and von Henke.
func theorem(n, spare int, eps parley.Tick, rho int64, period parley.Tick) parley.Tick {
	sum := 2*eps*parley.Tick(n-1) + million(period, 2*rho)*parley.Tick(n)
	return (sum + parley.Tick(spare) - 1) / parley.Tick(spare)
}

// bound returns the necessary condition for any clock synchronization without signatures.
func bound(n, m int) error {
	if n > 3*m {
		return nil
	}
	return fmt.Errorf("the clocks of %d processes can be kept together with at most m = %d faulty, not %d: "+
		"n > 3m is necessary", n, (n-1)/3, m)
}

// million returns x*ppm/1,000,000, rounded up. Neither may be negative.
func million(x parley.Tick, ppm int64) parley.Tick {
	return -share(-x, parley.Tick(ppm), 1_000_000)
}

// share returns x*part/whole, rounded down, for 0 <= part and 0 < whole, without a
// product that could overflow. The result must fit.
func share(x, part, whole parley.Tick) parley.Tick {
	hi, lo := bits.Mul64(magnitude(x), uint64(part))
	q, rest := bits.Div64(hi, lo, uint64(whole))
	if x < 0 {
		if rest > 0 {
			q++
		}
		return -parley.Tick(q)
	}
	return parley.Tick(q)
}

func magnitude(x parley.Tick) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

// apart returns the difference of two times, or the largest number if the difference is larger.
func apart(a, b parley.Tick) parley.Tick {
	d := max(a, b) - min(a, b)
	if d < 0 {
		return 1<<63 - 1
	}
	return d
}

// floorDiv returns x/y rounded down, and the remainder, for y > 0.
func floorDiv(x, y parley.Tick) (q, r parley.Tick) {
	q, r = x/y, x%y
	if r < 0 {
		q, r = q-1, r+y
	}
	return q, r
}
