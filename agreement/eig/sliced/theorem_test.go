package sliced

import (
	"maps"
	"math/rand/v2"
	"testing"
)

// randomFaults makes m processes faulty, with or without the source.
func randomFaults(rng *rand.Rand, n, m int) System {
	s := System{N: n, M: m, Source: rng.IntN(n), Value: rng.Uint64N(2), Default: rng.Uint64N(2)}
	for _, p := range rng.Perm(n)[:m] {
		if r := s.Lieutenant(p); r < 0 {
			s.SourceFaulty = true
		} else {
			s.Faulty |= 1 << r
		}
	}
	return s
}

func holds(s System, decisions uint64) (agreement, validity bool) {
	d := decisions & s.Correct()
	agreement = d == 0 || d == s.Correct()
	validity = s.SourceFaulty || d == broadcast(s.Value)&s.Correct()
	return agreement, validity
}

// With n > 3m both properties hold; they are not built in, because DepthFirst asks for every lie.
func TestAgreementAndValidityWithinTheBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, c := range []struct{ n, m, runs int }{
		{4, 1, 3000}, {5, 1, 1000}, {7, 2, 2000}, {9, 2, 500}, {10, 3, 300}, {11, 3, 100}, {13, 4, 20},
	} {
		for range c.runs {
			s := randomFaults(rng, c.n, c.m)
			decisions := s.DepthFirst(TwoFaced(rng.Uint64()), 1)
			if agreement, validity := holds(s, decisions); !agreement || !validity {
				t.Fatalf("%+v decides %b", s, decisions)
			}
		}
	}
}

// With n = 3m random lies suffice to break them.
func TestViolationsAtTheBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, c := range []struct{ n, m int }{{6, 2}, {9, 3}} {
		var noAgreement, noValidity int
		for range 2000 {
			s := randomFaults(rng, c.n, c.m)
			agreement, validity := holds(s, s.DepthFirst(TwoFaced(rng.Uint64()), 1))
			if !agreement {
				noAgreement++
			}
			if !validity {
				noValidity++
			}
		}
		t.Logf("n = %d, m = %d: of 2000 runs %d without agreement, %d without validity",
			c.n, c.m, noAgreement, noValidity)
		if noAgreement == 0 || noValidity == 0 {
			t.Errorf("n = %d, m = %d: no violation found", c.n, c.m)
		}
	}
	// Of three processes, one lieutenant that says the opposite breaks validity.
	s := System{N: 3, M: 1, Faulty: 0b10, Value: 1}
	flip := func(_ Path, held uint64) uint64 { return ^broadcast(held) }
	if _, validity := holds(s, s.DepthFirst(flip, 1)); validity {
		t.Error("n = 3, m = 1: validity holds")
	}
}

// The article's example of the second stage: six processes, a faulty source that tells three
// lieutenants 1 and two 0; all decide 1.
func TestArticleSecondStage(t *testing.T) {
	s := System{N: 6, M: 1, SourceFaulty: true}
	tree := maps.Collect(s.Levels(func(Path, uint64) uint64 { return 0b00111 }).Nodes())
	for q, want := range []uint64{0b11111, 0b11111, 0b11111, 0, 0} {
		if got := tree[Path(0).Append(q)].In; got != want {
			t.Errorf("leaf of lieutenant %d is %b, want %b", q, got, want)
		}
	}
	if got := tree[0].Out; got != 0b11111 {
		t.Errorf("decisions %b", got)
	}
}

// The article's example of the first stage: seven processes, three get 0 and three get 1. The
// relays of round 2 repeat the values, and the default decides the 3-3 tie at the root.
func TestArticleFirstStage(t *testing.T) {
	for def := range uint64(2) {
		s := System{N: 7, M: 2, SourceFaulty: true, Default: def}
		tree := s.Levels(func(Path, uint64) uint64 { return 0b111000 })
		for p, node := range tree.Nodes() {
			first := (p >> 8).Last()
			if want := broadcast(0b111000>>max(first, 0)&1) & 0b111111; first >= 0 && node.In != want {
				t.Errorf("%x is %b, want %b", p, node.In, want)
			}
		}
		if got, want := tree.Decisions(), broadcast(def)&0b111111; got != want {
			t.Errorf("default %d: decisions %b", def, got)
		}
	}
}
