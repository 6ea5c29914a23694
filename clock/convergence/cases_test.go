package convergence_test

import (
	"errors"
	"testing"

	"parley"
	"parley/clock/convergence"
)

func fraction(t *testing.T, text string) convergence.Fraction {
	t.Helper()
	f, err := convergence.ParseFraction(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The factor 3m/n holds against delta and for one round: with delta fixed, a faulty
// clock holds the skew at 2m*delta/(n-m) for ever. n = 4, delta = 12.
func TestSkewDoesNotGoToZero(t *testing.T) {
	delta := convergence.Fraction{Num: 12, Den: 1}
	p, q := convergence.Fraction{Num: 0, Den: 1}, delta
	want := []string{"12", "9", "33/4", "129/16", "513/64", "2049/256"}
	for round := range 12 {
		apart, err := convergence.Spread([]convergence.Fraction{p, q})
		if err != nil {
			t.Fatal(err)
		}
		if round < len(want) && apart.String() != want[round] {
			t.Errorf("after %d rounds the clocks are %s apart, not %s", round, apart, want[round])
		}
		if 8*apart.Den >= apart.Num {
			t.Errorf("after %d rounds they are %s apart: not more than 8", round, apart)
		}
		// s is where p is; r shows each of the two delta too little or too much.
		low := convergence.Fraction{Num: p.Num - 12*p.Den, Den: p.Den}
		high := convergence.Fraction{Num: q.Num + 12*q.Den, Den: q.Den}
		everyone := parley.Everyone(4)
		atP, err := convergence.Exact(convergence.Values, 0, []convergence.Fraction{p, q, p, low}, everyone, delta)
		if err != nil {
			t.Fatal(err)
		}
		q, err = convergence.Exact(convergence.Values, 1, []convergence.Fraction{p, q, p, high}, everyone, delta)
		if err != nil {
			t.Fatal(err)
		}
		p = atP
	}
}

func TestFractions(t *testing.T) {
	for text, want := range map[string]string{"15/2": "15/2", "30/4": "15/2", "-6/3": "-2", "0/7": "0", "12": "12"} {
		if got := fraction(t, text).String(); got != want {
			t.Errorf("%s is read as %s", text, got)
		}
	}
	for _, text := range []string{"", "x", "1/0", "1/-2", "1/2/3", "1.5", "4611686018427387904"} {
		if _, err := convergence.ParseFraction(text); err == nil {
			t.Errorf("%q is taken for a number", text)
		}
	}
	// Fractions of different denominators: the mean of 1/2, 1/3, 0 (own) is 5/18.
	readings := []convergence.Fraction{fraction(t, "1/2"), fraction(t, "1/3"), fraction(t, "0")}
	got, err := convergence.Exact(convergence.Values, 2, readings, parley.Everyone(3), fraction(t, "1/2"))
	if err != nil || got.String() != "5/18" {
		t.Error(got, err)
	}
	// One that was not read counts as the own one.
	got, err = convergence.Exact(convergence.Differences, 2, readings, parley.SetOf(0), fraction(t, "1/2"))
	if err != nil || got.String() != "1/6" {
		t.Error(got, err)
	}
	huge := []convergence.Fraction{{Num: 1 << 60, Den: 1}, {Num: 1, Den: 1 << 60}}
	_, exact := convergence.Exact(convergence.Values, 0, huge, parley.Everyone(2), huge[0])
	_, spread := convergence.Spread(huge)
	_, bound := convergence.RoundBound(4, 1, huge[0])
	for _, err := range []error{exact, spread, bound} {
		if !errors.Is(err, convergence.ErrLarge) {
			t.Error(err)
		}
	}
}
