package sliced

import (
	"fmt"
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

// rushing lies against what the correct are saying in the same round: it tells every receiver but
// those at odds with the seed the opposite of what most of the sender's siblings say.
func rushing(t *testing.T, seed uint64) LevelAdversary {
	return func(tree *Tree, round int) Liar {
		s := tree.System()
		return func(path Path, held uint64) uint64 {
			if path.Len() != round {
				t.Errorf("asked for %v in round %d", path.Relays(), round)
			}
			if round == 0 {
				return seed
			}
			var votes int
			for q := range s.N - 1 {
				sibling := path.Parent().Append(q)
				if q == path.Last() || !sibling.in(s.N-1, s.M) || s.Faulty>>q&1 != 0 {
					continue
				}
				if tree.Input(sibling)&1 != 0 { // a broadcast: anyone's bit will do
					votes++
				} else {
					votes--
				}
			}
			if votes > 0 {
				return seed & uint64(path)
			}
			return ^seed | uint64(path)
		}
	}
}

// adversaries is one of each kind, by name.
func adversaries(t *testing.T, s System, seed uint64) map[string]LevelAdversary {
	flip := Liar(func(_ Path, held uint64) uint64 { return ^broadcast(held) })
	honest := Liar(func(_ Path, held uint64) uint64 { return broadcast(held) })
	split := Liar(func(_ Path, held uint64) uint64 { return 0x5555555555555555 << held })
	return map[string]LevelAdversary{
		"two-faced": TwoFaced(seed).EveryRound(),
		"silent":    Silent(s.Default).EveryRound(),
		"flip":      flip.EveryRound(),
		"honest":    honest.EveryRound(),
		"split":     split.EveryRound(),
		"rushing":   rushing(t, seed),
	}
}

// recorded passes an adversary's lies on and keeps them, so that they can be told again.
func recorded(adv LevelAdversary, lies map[Path]uint64) LevelAdversary {
	return func(tree *Tree, round int) Liar {
		l := adv(tree, round)
		return func(path Path, held uint64) uint64 {
			word := l(path, held)
			lies[path] = word
			return word
		}
	}
}

// replay tells recorded lies, and complains of questions that were not put before.
func replay(t *testing.T, lies map[Path]uint64) Liar {
	return func(path Path, _ uint64) uint64 {
		word, ok := lies[path]
		if !ok {
			t.Errorf("asked for %v, whose sender is correct", path.Relays())
		}
		return word
	}
}

func TestAllEnginesAgreeWithTheOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 350 {
		s := randomSystem(rng)
		if err := s.Validate(); err != nil {
			t.Fatal(err)
		}
		for name, adv := range adversaries(t, s, rng.Uint64()) {
			lies := map[Path]uint64{}
			tree := s.Levels(recorded(adv, lies))
			liar := replay(t, lies)
			label := fmt.Sprintf("system %d %+v, %s", i, s, name)
			compareTree(t, label, tree, runOracle(s, liar, name == "silent"))
			want := tree.Result()
			if int(want.Lies) != len(lies) {
				t.Fatalf("%s: %d lies, counted %d", label, len(lies), want.Lies)
			}
			for workers := range 4 {
				if got := s.DepthFirst(liar, workers); got != want {
					t.Fatalf("%s: depth-first on %d workers %+v, levels %+v", label, workers, got, want)
				}
			}
			if t.Failed() {
				t.Fatal(label)
			}
		}
	}
}

// compareTree compares every node of every process.
func compareTree(t *testing.T, label string, tree *Tree, o *oracle) {
	t.Helper()
	nodes := 0
	for k := range tree.System().M + 1 {
		for path := range tree.Paths(k) {
			nodes++
			name := named(o.s, path)
			in := o.word(func(p int) uint64 { return o.value(p, name) })
			out := o.word(func(p int) uint64 { return o.processes[p].output[name] })
			if got := tree.Input(path); got != in {
				t.Fatalf("%s: input of %v is %b, oracle %b", label, path.Relays(), got, in)
			}
			if got := tree.Output(path); got != out {
				t.Fatalf("%s: output of %v is %b, oracle %b", label, path.Relays(), got, out)
			}
		}
	}
	r := tree.Result()
	if r.Decisions != tree.Output(0) || int(r.Nodes) != nodes {
		t.Fatalf("%s: %+v, but %d nodes and root %b", label, r, nodes, tree.Output(0))
	}
	if o.s.Source > 0 && nodes != len(o.processes[0].output) {
		t.Fatalf("%s: %d nodes, oracle %d", label, nodes, len(o.processes[0].output))
	}
}

// Wider systems than the oracle can do take the other branches of the counters: more than seven
// liars below a node, 64 lieutenants, and subtrees that are settled at one value only.
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
			want := s.Levels(liar.EveryRound()).Result()
			for workers := 1; workers <= 3; workers++ {
				if got := s.DepthFirst(liar, workers); got != want {
					t.Errorf("%+v: depth-first on %d workers %+v, levels %+v", s, workers, got, want)
				}
			}
		}
	}
}

// Every engine asks for a lie once, and tells the liar what the sender holds.
func TestLiarIsToldWhatTheSenderHolds(t *testing.T) {
	for _, s := range []System{
		{N: 9, M: 3, Faulty: 0b10010010, SourceFaulty: true},
		{N: 13, M: 2, Faulty: 0xff7, Value: 1, SourceFaulty: true},
		{N: 12, M: 2, Faulty: 0x47d, Value: 1, SourceFaulty: true},
		{N: 12, M: 2, Faulty: 0x4fd, Value: 1, SourceFaulty: true},
		{N: 5, M: 0, Faulty: 0b1, Value: 1, SourceFaulty: true},
	} {
		pure := TwoFaced(7)
		tree := s.Levels(pure.EveryRound())
		var asked atomic.Int64
		seen := map[Path]bool{}
		check := func(path Path, held uint64) uint64 {
			want := s.Value
			if path != 0 {
				want = tree.Input(path.Parent()) >> path.Last() & 1
			}
			if held != want {
				t.Errorf("%v: held %d, want %d", path.Relays(), held, want)
			}
			asked.Add(1)
			return pure(path, held)
		}
		once := func(path Path, held uint64) uint64 {
			if seen[path] {
				t.Errorf("asked twice for %v", path.Relays())
			}
			seen[path] = true
			return check(path, held)
		}
		for name, run := range map[string]func() Result{
			"levels":      func() Result { return s.Levels(Liar(once).EveryRound()).Result() },
			"depth-first": func() Result { return s.DepthFirst(once, 1) },
			"split":       func() Result { return s.DepthFirst(check, 3) },
		} {
			clear(seen)
			asked.Store(0)
			if r := run(); int64(r.Lies) != asked.Load() {
				t.Errorf("%s asked %d times, says %d", name, asked.Load(), r.Lies)
			}
		}
	}
}

// The words of the correct are there when the rushing adversary looks, and stay; those of the
// faulty read as 0.
func TestRushingAdversarySeesTheRound(t *testing.T) {
	s := System{N: 7, M: 2, Faulty: 0b100001, Value: 1}
	seen := map[Path]uint64{}
	tree := s.Levels(func(tree *Tree, round int) Liar {
		for k := range round + 1 {
			for p := range tree.Paths(k) {
				if p != 0 && s.Faulty>>p.Last()&1 == 0 {
					seen[p] = tree.Input(p)
				} else if k == round && tree.Input(p) != 0 && k > 0 {
					t.Errorf("%v: not yet asked for, reads %b", p.Relays(), tree.Input(p))
				}
			}
		}
		return TwoFaced(uint64(round))
	})
	if len(seen) != 4+4*5 {
		t.Errorf("%d words of correct relays", len(seen))
	}
	for p, word := range seen {
		if got := tree.Input(p); got != word {
			t.Errorf("%v: saw %b, is %b", p.Relays(), word, got)
		}
	}
}
