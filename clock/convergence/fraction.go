package convergence

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley"
)

// Fraction is an exact number in its lowest terms; Den is positive. Two are equal
// if they are ==. The machine counts whole ticks: fractions are for worked cases.
type Fraction struct{ Num, Den int64 }

// ErrLarge says that exact arithmetic went beyond 62 bits.
var ErrLarge = errors.New("the numbers are too large to be exact")

// ParseFraction reads 15/2 or 7.
func ParseFraction(text string) (Fraction, error) {
	over, under, isFraction := strings.Cut(text, "/")
	if !isFraction {
		under = "1"
	}
	num, err := strconv.ParseInt(over, 10, 64)
	den, err2 := strconv.ParseInt(under, 10, 64)
	if err != nil || err2 != nil || den <= 0 {
		return Fraction{}, fmt.Errorf("%q: a whole number or a fraction such as 15/2 was expected", text)
	}
	if !small(num) || !small(den) {
		return Fraction{}, fmt.Errorf("%s: %w", text, ErrLarge)
	}
	return lowest(num, den), nil
}

func (f Fraction) String() string {
	if f.Den == 1 {
		return strconv.FormatInt(f.Num, 10)
	}
	return fmt.Sprintf("%d/%d", f.Num, f.Den)
}

// Exact is one resynchronization of process own without rounding: the new value of
// its clock in the form of Values, the increment in that of Differences. readings
// has own's clock among them, and all are read at one instant. The arithmetic is
// the machine's, in ticks so small that all numbers are whole.
func Exact(f Form, own parley.ID, readings []Fraction, read parley.Set, delta Fraction) (Fraction, error) {
	ticks, scale, err := scaled(append([]Fraction{delta}, readings...))
	if err != nil {
		return Fraction{}, err
	}
	limit, clocks := ticks[0], ticks[1:]
	here := clocks[own]
	if f == Differences {
		for i := range clocks {
			clocks[i] -= here
		}
		here = 0
	}
	m := meanOf(own, here, clocks, read, limit)
	whole, ok := product(int64(m.whole), int64(m.n))
	den, fits := product(scale, int64(m.n))
	if !ok || !fits {
		return Fraction{}, ErrLarge
	}
	return lowest(whole+int64(m.rest), den), nil
}

// Spread returns how far apart the furthest two clocks are.
func Spread(clocks []Fraction) (Fraction, error) {
	ticks, scale, err := scaled(clocks)
	if err != nil || len(ticks) == 0 {
		return Fraction{0, 1}, err
	}
	return lowest(int64(slices.Max(ticks)-slices.Min(ticks)), scale), nil
}

// RoundBound returns (3m/n)*delta: clocks that are at most delta apart are at most
// so far apart after one resynchronization with exact readings.
func RoundBound(n, m int, delta Fraction) (Fraction, error) {
	num, ok := product(delta.Num, int64(3*m))
	den, fits := product(delta.Den, int64(n))
	if !ok || !fits {
		return Fraction{}, ErrLarge
	}
	return lowest(num, den), nil
}

// scaled returns the numbers as multiples of 1/scale, with room for a difference.
func scaled(all []Fraction) (ticks []parley.Tick, scale int64, err error) {
	scale = 1
	for _, f := range all {
		var ok bool
		if scale, ok = product(scale, f.Den/gcd(scale, f.Den)); !ok {
			return nil, 0, ErrLarge
		}
	}
	for _, f := range all {
		x, ok := product(f.Num, scale/f.Den)
		if !ok {
			return nil, 0, ErrLarge
		}
		ticks = append(ticks, parley.Tick(x))
	}
	return ticks, scale, nil
}

func lowest(num, den int64) Fraction {
	d := gcd(num, den)
	return Fraction{num / d, den / d}
}

// gcd is the greatest common divisor, positive if b is.
func gcd(a, b int64) int64 {
	if a < 0 {
		a = -a
	}
	for a != 0 {
		a, b = b%a, a
	}
	return b
}

// small tells whether a number leaves room for a sum.
func small(x int64) bool { return -1<<61 < x && x < 1<<61 }

// product multiplies if the result is small.
func product(a, b int64) (int64, bool) {
	if a == 0 || b == 0 {
		return 0, true
	}
	p := a * b
	return p, small(a) && small(b) && p/b == a && small(p)
}
