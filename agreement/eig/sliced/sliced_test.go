package sliced

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"testing"
)

// randomSystem draws a small system: any set of faulty processes, also beyond m.
func randomSystem(rng *rand.Rand) System {
	m := rng.IntN(4)
	n := max(2, m+2) + rng.IntN(9-max(2, m+2))
	if m == 3 && n == 8 && rng.IntN(3) > 0 {
		n-- // the oracle is slow
	}
	s := System{N: n, M: m, Source: rng.IntN(n), Value: rng.Uint64N(2), Default: rng.Uint64N(2)}
	s.SourceFaulty = rng.IntN(2) == 0
	for range rng.IntN(n) {
		s.Faulty |= 1 << rng.IntN(n-1)
	}
	return s
}

func TestEnginesAgreeWithTheOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 350 {
		s := randomSystem(rng)
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		for name, liar := range map[string]Liar{
			"two-faced": TwoFaced(rng.Uint64()),
			"silent":    func(Path, uint64) uint64 { return broadcast(s.Default) },
			"flip":      func(_ Path, held uint64) uint64 { return ^broadcast(held) },
			"honest":    func(_ Path, held uint64) uint64 { return broadcast(held) },
			"split":     func(_ Path, held uint64) uint64 { return 0x5555555555555555 << held },
		} {
			o := runOracle(s, liar)
			if name == "silent" {
				o = runOracle(s, nil)
			}
			tree := maps.Collect(s.Levels(liar).Nodes())
			compareTree(t, fmt.Sprintf("system %d %+v, %s", i, s, name), tree, o)
			for workers := range 4 {
				if got := s.DepthFirst(liar, workers); got != tree[0].Out {
					t.Fatalf("system %d %+v, %s: depth-first on %d workers %b, levels %b", i, s, name, workers, got, tree[0].Out)
				}
			}
		}
	}
}

func compareTree(t *testing.T, label string, tree map[Path]Node, o *oracle) {
	t.Helper()
	for p := range o.processes {
		r := o.s.Lieutenant(p)
		if r < 0 {
			continue
		}
		if len(tree) != len(o.processes[p].output) {
			t.Fatalf("%s: %d nodes, oracle %d", label, len(tree), len(o.processes[p].output))
		}
		for path, out := range o.processes[p].output {
			node, known := tree[packed(o.s, path)]
			in := o.value(p, path)
			if gotIn, gotOut := node.In>>r&1, node.Out>>r&1; !known || gotIn != in || gotOut != out {
				t.Fatalf("%s: node %v of process %d is %d/%d, oracle %d/%d", label, []rune(path), p, gotIn, gotOut, in, out)
			}
		}
	}
}

// Systems too wide for the oracle take the other branches of the counters: more than seven
// faulty relays below a node, 64 lieutenants, and subtrees that are settled at one value only.
func TestEnginesAgreeOnWideSystems(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, c := range []struct{ n, m, faulty int }{
		{65, 1, 30}, {65, 2, 64}, {65, 2, 21}, {40, 2, 13}, {33, 2, 16}, {24, 3, 8}, {24, 3, 9},
		{16, 3, 8}, {12, 2, 8}, {18, 3, 17}, {12, 4, 4}, {12, 4, 3}, {11, 4, 8}, {10, 4, 3},
		{9, 5, 3}, {9, 7, 8}, {10, 8, 2},
	} {
		s := System{N: c.n, M: c.m, Source: rng.IntN(c.n)}
		for ones(s.Faulty) < c.faulty {
			s.Faulty |= 1 << rng.IntN(c.n-1)
		}
		for i := range 8 {
			if c.m == 8 && i%4 != 1 {
				continue // a big tree
			}
			s.Value, s.Default, s.SourceFaulty = uint64(i&1), uint64(i>>1&1), i>>2&1 == 1
			liar := TwoFaced(rng.Uint64())
			want := s.Levels(liar).Decisions()
			for workers := 1; workers <= 3; workers++ {
				if got := s.DepthFirst(liar, workers); got != want {
					t.Errorf("%+v: depth-first on %d workers %b, levels %b", s, workers, got, want)
				}
			}
		}
	}
}

// Every engine asks for each lie once, and passes the liar what the sender holds.
func TestLiarSeesWhatTheSenderHolds(t *testing.T) {
	for _, s := range []System{
		{N: 9, M: 3, Faulty: 0b10010010, SourceFaulty: true},
		{N: 13, M: 2, Faulty: 0xff7, Value: 1, SourceFaulty: true},
		{N: 12, M: 2, Faulty: 0x47d, Value: 1, SourceFaulty: true},
		{N: 12, M: 2, Faulty: 0x4fd, Value: 1, SourceFaulty: true},
		{N: 5, M: 0, Faulty: 0b1, Value: 1, SourceFaulty: true},
	} {
		pure := TwoFaced(7)
		tree := maps.Collect(s.Levels(pure).Nodes())
		all := 0 // messages of faulty senders
		for path := range tree {
			if path == 0 && s.SourceFaulty || path != 0 && s.Faulty>>path.Last()&1 != 0 {
				all++
			}
		}
		var asked atomic.Int64
		seen := map[Path]bool{}
		check := func(path Path, held uint64) uint64 {
			want := s.Value
			if path != 0 {
				want = tree[path>>8].In >> path.Last() & 1
			}
			if held != want {
				t.Errorf("%x: held %d, want %d", path, held, want)
			}
			asked.Add(1)
			return pure(path, held)
		}
		once := func(path Path, held uint64) uint64 {
			if seen[path] {
				t.Errorf("asked twice for %x", path)
			}
			seen[path] = true
			return check(path, held)
		}
		for name, run := range map[string]func(){
			"levels":      func() { s.Levels(once) },
			"depth-first": func() { s.DepthFirst(once, 1) },
			"split":       func() { s.DepthFirst(check, 3) },
		} {
			clear(seen)
			asked.Store(0)
			if run(); int(asked.Load()) != all {
				t.Errorf("%s asked %d times of %d", name, asked.Load(), all)
			}
		}
	}
}
