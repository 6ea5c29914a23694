package sliced

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestCounts(t *testing.T) {
	for _, c := range []struct {
		n, m                      int
		leaves, nodes, deliveries uint64
	}{
		{4, 1, 3, 4, 12},
		{7, 2, 30, 37, 222},
		{10, 3, 504, 586, 5_274},
		{13, 4, 11_880, 13_345, 160_140},
		{16, 5, 360_360, 396_076, 5_941_140},
		{19, 6, 13_366_080, 14_472_901, 260_512_218},
		{22, 7, 586_051_200, 627_715_222, 13_182_019_662},
		{2, 0, 1, 1, 1},
		{3, 1, 2, 3, 6},
	} {
		got, ok := Count(c.n, c.m)
		if want := (Size{c.leaves, c.nodes, c.deliveries}); !ok || got != want {
			t.Errorf("n = %d, m = %d: %+v %v, want %+v", c.n, c.m, got, ok, want)
		}
	}
	if _, ok := Count(65, 8); !ok {
		t.Error("65 processes and 8 faults do not fit")
	}
	for _, c := range []struct{ n, m int }{
		{3, 2}, {4, -1}, {1, 0}, {100, 33}, {math.MaxInt, 2}, {math.MaxInt, 1},
	} {
		if got, ok := Count(c.n, c.m); ok {
			t.Errorf("n = %d, m = %d: %+v", c.n, c.m, got)
		}
	}
}

// Memory returns exactly the size of the tree.
func TestMemory(t *testing.T) {
	for _, s := range []System{{N: 2}, {N: 3, M: 1, Faulty: 0b11}, {N: 10, M: 3}, {N: 10, M: 8}, {N: 13, M: 4}} {
		tree := s.Levels(TwoFaced(1))
		words := 0
		for k := range tree.in {
			words += cap(tree.in[k]) + cap(tree.out[k])
		}
		if got := s.Memory(); got != uint64(8*words) {
			t.Errorf("%+v: %d bytes, holds %d words", s, got, words)
		}
	}
	if got := (System{N: 4, M: 2}).Memory(); got != 8*2*(1+3) {
		t.Errorf("n = 4, m = 2: %d bytes", got)
	}
}

func TestMajority(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for g := range 65 {
		words := make([]uint64, g)
		for i := range words {
			words[i] = rng.Uint64()&^2 | 1 // one receiver sees only ones, another none
		}
		for need := -1; need <= g+1; need++ {
			var want uint64
			for r := range 64 {
				count := 0
				for _, w := range words {
					count += int(w >> r & 1)
				}
				if count >= need {
					want |= 1 << r
				}
			}
			if got := atLeast(words, need); got != want {
				t.Fatalf("%d of %d words: %x, want %x", need, g, got, want)
			}
			if g <= 7 && need >= 1 && need <= 7 {
				var seven [7]uint64
				copy(seven[:], words)
				if got := atLeast7(&seven, need); got != want {
					t.Fatalf("%d of seven words: %x, want %x", need, got, want)
				}
			}
		}
		for def := range 2 {
			need := threshold(g, uint64(def))
			for count := 0; g > 0 && count <= g; count++ {
				want := def
				if 2*count > g {
					want = 1
				} else if 2*(g-count) > g {
					want = 0
				}
				if got := count >= need; got != (want == 1) {
					t.Errorf("%d ones of %d, default %d: threshold %d", count, g, def, need)
				}
			}
		}
	}
}

func TestTwoFacedIsBalanced(t *testing.T) {
	// Over the messages of a tree each receiver gets about as many ones as zeros; two receivers
	// or two siblings agree about half the time, and so do two seeds.
	liars := []Liar{TwoFaced(0), TwoFaced(1)}
	var ones, neighbours, siblings, seeds, total int
	var before uint64
	visit(4, 0, 0, everyone(18), func(i int, p Path, _ uint64) {
		if i >= 20_000 {
			return
		}
		w := liars[0](p, 0)
		if w != liars[0](p, 1) || w != TwoFaced(0)(p, 0) {
			t.Fatal("not a function of seed and path")
		}
		ones += bits.OnesCount64(w)
		neighbours += bits.OnesCount64(w ^ bits.RotateLeft64(w, 1))
		siblings += bits.OnesCount64(w ^ before)
		before = w
		seeds += bits.OnesCount64(w ^ liars[1](p, 0))
		total += 64
	})
	for name, count := range map[string]int{
		"ones": ones, "neighbours": neighbours, "siblings": siblings, "seeds": seeds,
	} {
		// The standard deviation is about 566.
		if d := count - total/2; d < -4000 || d > 4000 {
			t.Errorf("%s: %d of %d", name, count, total)
		}
	}
}

func TestValidate(t *testing.T) {
	good := System{N: 7, M: 2}
	for _, c := range []struct {
		change func(*System)
		want   string
	}{
		{func(s *System) {}, ""},
		{func(s *System) { s.N = 65 }, ""},
		{func(s *System) { s.N, s.M = 10, 8 }, ""},
		{func(s *System) { s.N, s.M = 2, 0 }, ""},
		{func(s *System) { s.Faulty = 0b111111 }, ""},
		{func(s *System) { s.N = 66 }, "n = 66 processes: allowed are 2 to 65"},
		{func(s *System) { s.N, s.M = 1, 0 }, "n = 1 processes: allowed are 2 to 65"},
		{func(s *System) { s.M = -1 }, "m = -1 faults: allowed are 0 to 8"},
		{func(s *System) { s.N, s.M = 65, 9 }, "m = 9 faults: allowed are 0 to 8"},
		{func(s *System) { s.M = 6 }, "n must be at least m+2 = 8"},
		{func(s *System) { s.Source = 7 }, "source 7: allowed are process ids 0 to 6"},
		{func(s *System) { s.Source = -1 }, "source -1"},
		{func(s *System) { s.Faulty = 1 << 6 }, "set 0x40: allowed are the bits of lieutenants 0 to 5"},
		{func(s *System) { s.Value = 2 }, "value 2: allowed are 0 and 1"},
		{func(s *System) { s.Default = 3 }, "default 3: allowed are 0 and 1"},
	} {
		s := good
		c.change(&s)
		err := s.Validate()
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%+v: %v", s, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%+v: %v, want %q", s, err, c.want)
		}
		if c.want != "" {
			for _, run := range []func(){func() { s.Levels(nil) }, func() { s.DepthFirst(nil, 1) }} {
				func() {
					defer func() {
						if got, _ := recover().(string); !strings.Contains(got, c.want) {
							t.Errorf("panic %q, want %q", got, c.want)
						}
					}()
					run()
				}()
			}
		}
	}
}
