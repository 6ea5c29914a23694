package eig_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
	"parley/trace"
)

// run is one simulated run: who lies and how, and what the source is given.
type run struct {
	c      eig.Config
	value  string
	faulty map[parley.ID]faulty.Behaviour
	say    eig.Say // replaces the liars' own words, if set
	seed   uint64
	log    *trace.Log
}

func (r run) protocol() parley.Protocol {
	p := eig.Rounds(r.c)
	if r.say != nil {
		p.Lies = eig.Tell(r.c, r.say)
	}
	return lockstep.Of(p, lockstep.Simulated)
}

func (r run) do() *sim.Sim {
	behave := r.faulty
	if r.say != nil {
		behave = maps.Clone(r.faulty)
		for id := range behave {
			behave[id] = faulty.Script
		}
	}
	return sim.Run(sim.Options{
		Protocol: r.protocol(), Faulty: behave, Seed: r.seed, Measure: true, Log: r.log,
		Requests: []sim.Request{{At: r.c.Source, Msg: parley.Msg{Kind: parley.Propose, Body: []byte(r.value)}}},
	})
}

func config(n, m int) eig.Config { return eig.Config{N: n, M: m, Default: []byte("0")} }

// decisions returns what the correct lieutenants decided, as text by process.
func decisions(s *sim.Sim, c eig.Config) map[parley.ID]string {
	out := make(map[parley.ID]string)
	for id, v := range problem.Decisions(&s.History) {
		if id != c.Source {
			out[id] = string(v)
		}
	}
	return out
}

// broken returns the names of the properties that do not hold.
func broken(s *sim.Sim, p parley.Protocol) []string {
	var out []string
	for _, q := range p.Properties {
		if q.Check(&s.History) != nil {
			out = append(out, q.Name)
		}
	}
	return out
}

func article(id parley.ID) string { return fmt.Sprint(id + 1) }

// halves is the General of the article's example: 0 to P2, P3 and P4, and 1 to
// P5, P6 and P7.
func halves(_ []parley.ID, to parley.ID, _ []byte) []byte {
	if to <= 3 {
		return []byte("0")
	}
	return []byte("1")
}

// said returns the rows that a process sends to another in a round.
func said(p parley.Protocol, log *trace.Log, from, to parley.ID, round int) string {
	var rows []string
	for _, e := range log.Events {
		mine := e.Op == trace.Send && from != to && (e.Peer == to || e.Peer == parley.All) || e.Op == trace.Keep && from == to
		if e.At == from && mine && e.Msg.Seq == uint64(round) {
			rows = slices.AppendSeq(rows, p.Explain(parley.Env{From: from, To: to, Path: e.Path}, e.Msg, article))
		}
	}
	return strings.Join(rows, " ")
}

// Article, Table 1: in round 1 each process sends the same to all six, itself
// included.
func TestTable1(t *testing.T) {
	r := run{c: config(7, 2), value: "0", faulty: map[parley.ID]faulty.Behaviour{0: {}}, say: halves, log: &trace.Log{Keep: true}}
	r.do()
	want := []string{"{0,12}", "{0,13}", "{0,14}", "{1,15}", "{1,16}", "{1,17}"}
	for from := parley.ID(1); from < 7; from++ {
		for to := parley.ID(1); to < 7; to++ {
			if got := said(r.protocol(), r.log, from, to, 1); got != want[from-1] {
				t.Errorf("P%d to P%d in round 1: %s, want %s", from+1, to+1, got, want[from-1])
			}
		}
		if got := said(r.protocol(), r.log, from, 0, 1); got != "" {
			t.Errorf("P%d sends %s back to the General", from+1, got)
		}
	}
}

// Article, Table 2: the thirty cells of round 2.
func TestTable2(t *testing.T) {
	r := run{c: config(7, 2), value: "0", faulty: map[parley.ID]faulty.Behaviour{0: {}}, say: halves, log: &trace.Log{Keep: true}}
	r.do()
	want := []string{
		"{0,132} {0,142} {1,152} {1,162} {1,172}",
		"{0,123} {0,143} {1,153} {1,163} {1,173}",
		"{0,124} {0,134} {1,154} {1,164} {1,174}",
		"{0,125} {0,135} {0,145} {1,165} {1,175}",
		"{0,126} {0,136} {0,146} {1,156} {1,176}",
		"{0,127} {0,137} {0,147} {1,157} {1,167}",
	}
	for from := parley.ID(1); from < 7; from++ {
		for to := parley.ID(1); to < 7; to++ {
			if got := said(r.protocol(), r.log, from, to, 2); got != want[from-1] {
				t.Errorf("P%d to P%d in round 2: %s, want %s", from+1, to+1, got, want[from-1])
			}
		}
	}
}

// Article, Tables 1 and 2, with the decision that the rules give: three against
// three at rank 1 is a tie, so the tie-breaker decides, and all alike.
func TestTieTakesTheDefault(t *testing.T) {
	for _, otherwise := range []string{"0", "1"} {
		c := config(7, 2)
		c.Default = []byte(otherwise)
		s := run{c: c, value: "0", faulty: map[parley.ID]faulty.Behaviour{0: {}}, say: halves}.do()
		for id, v := range decisions(s, c) {
			if v != otherwise {
				t.Errorf("default %s: P%d decides %s", otherwise, id+1, v)
			}
		}
	}
}

// Second stage, Figure 3: six processes, the General tells the first three
// lieutenants 1 and the last two 0. All decide 1, and below the root all have
// the same tree.
func TestFigure3(t *testing.T) {
	c := config(6, 1)
	r := run{c: c, value: "1", faulty: map[parley.ID]faulty.Behaviour{0: {}},
		say: func(_ []parley.ID, to parley.ID, _ []byte) []byte {
			if to <= 3 {
				return []byte("1")
			}
			return []byte("0")
		}}
	s := r.do()
	for id := parley.ID(1); id < 6; id++ {
		tree := r.protocol().Tree(s.Machine(id))
		var got []string
		for to := parley.ID(1); to < 6; to++ {
			in, out, children := tree.Node([]parley.ID{0, to})
			got = append(got, fmt.Sprintf("%s/%s/%d", in, out, len(children)))
		}
		if want := "[1/1/0 1/1/0 1/1/0 0/0/0 0/0/0]"; fmt.Sprint(got) != want {
			t.Errorf("P%d has the leaves %v, want %s", id+1, got, want)
		}
		heard := "1"
		if id > 3 {
			heard = "0"
		}
		in, out, children := tree.Node(tree.Root())
		if string(in) != heard || string(out) != "1" || len(children) != 5 {
			t.Errorf("P%d has a root of %s/%s with %d children, want %s/1 with 5", id+1, in, out, len(children), heard)
		}
	}
}

// First stage: no path contains a cycle, N-1, (N-1)(N-2), ... messages; an
// honest run sends exactly what Cost says, own copies included.
func TestCostIsMeasured(t *testing.T) {
	for _, nm := range [][2]int{{4, 1}, {7, 2}, {6, 1}, {10, 3}, {5, 0}, {5, 3}} {
		s := run{c: config(nm[0], nm[1]), value: "1"}.do()
		if want := eig.Cost(nm[0], nm[1]).PerRound; !slices.Equal(s.Stats.Sent, want) {
			t.Errorf("n=%d m=%d: measured %v, want %v", nm[0], nm[1], s.Stats.Sent, want)
		}
	}
	if got := eig.Cost(7, 2).PerRound; got[0].Messages != 6 || got[1].Messages != 36 || got[2].Messages != 180 {
		t.Errorf("the article's seven processes: %v", got)
	}
}

// A value that does not arrive is the default, and is relayed as such.
func TestMissingIsTheDefault(t *testing.T) {
	c := config(4, 1)
	r := run{c: c, value: "1", faulty: map[parley.ID]faulty.Behaviour{0: {}}, log: &trace.Log{Keep: true},
		say: func(_ []parley.ID, to parley.ID, _ []byte) []byte {
			if to == 1 {
				return nil
			}
			return []byte("1")
		}}
	s := r.do()
	if got := said(r.protocol(), r.log, 1, 2, 1); got != "{0,12}" {
		t.Errorf("P2 heard nothing and relays %s", got)
	}
	if got := decisions(s, c); got[1] != "1" || got[2] != "1" || got[3] != "1" {
		t.Errorf("decisions %v", got)
	}
}

// Three values and no majority: the default, not the most frequent.
func TestNoStrictMajority(t *testing.T) {
	c := config(6, 1)
	words := []string{"", "a", "a", "b", "c", "d"}
	s := run{c: c, value: "a", faulty: map[parley.ID]faulty.Behaviour{0: {}},
		say: func(_ []parley.ID, to parley.ID, _ []byte) []byte { return []byte(words[to]) }}.do()
	for id, v := range decisions(s, c) {
		if v != "0" {
			t.Errorf("P%d decides %s: two of five are no majority", id+1, v)
		}
	}
}

// Values of any kind: a liar invents hundreds, so that the codes widen, and
// validity holds.
func TestManyValues(t *testing.T) {
	c := config(10, 3)
	made := 0
	say := func(path []parley.ID, to parley.ID, _ []byte) []byte {
		made++
		return fmt.Appendf(nil, "%d/%v/%v", made, path, to)
	}
	r := run{c: c, value: "the order of the day", faulty: map[parley.ID]faulty.Behaviour{2: {}, 5: {}, 9: {}}, say: say}
	s := r.do()
	for id, v := range decisions(s, c) {
		if v != "the order of the day" {
			t.Errorf("P%d decides %q", id+1, v)
		}
	}
	if made < 300 {
		t.Errorf("only %d values were invented", made)
	}
	in, _, _ := r.protocol().Tree(s.Machine(1)).Node([]parley.ID{0, 3, 4, 2})
	if !strings.HasSuffix(string(in), "[0 3 4 2]/1") {
		t.Errorf("P2 heard %q along 1.4.5.3", in)
	}
}

// oracle is the article's algorithm told slowly: one map of paths a process.
func oracle(r run) map[parley.ID]string {
	l := r.c.N
	trees := make([]map[string]string, l)
	key := func(path []parley.ID) string { return fmt.Sprint(path) }
	tell := func(path []parley.ID, to parley.ID, held string) string {
		from := path[len(path)-1]
		if _, lies := r.faulty[from]; !lies {
			return held
		}
		if _, fellow := r.faulty[to]; fellow {
			return held // liars have no need to lie to each other
		}
		if v := r.say(path, to, []byte(held)); v != nil {
			return string(v)
		}
		return string(r.c.Default)
	}
	level := [][]parley.ID{{r.c.Source}}
	for p := range trees {
		trees[p] = map[string]string{key(level[0]): tell(level[0], parley.ID(p), r.value)}
	}
	var levels [][][]parley.ID
	for range r.c.M {
		levels = append(levels, level)
		var next [][]parley.ID
		for _, path := range level {
			for q := range parley.ID(l) {
				if slices.Contains(path, q) {
					continue
				}
				longer := append(slices.Clone(path), q)
				for p := range trees {
					trees[p][key(longer)] = tell(longer, parley.ID(p), trees[q][key(path)])
				}
				next = append(next, longer)
			}
		}
		level = next
	}
	out := make(map[parley.ID]string)
	for p, tree := range trees {
		if _, lies := r.faulty[parley.ID(p)]; lies || parley.ID(p) == r.c.Source {
			continue
		}
		for _, rank := range slices.Backward(levels) {
			for _, path := range rank {
				votes, children := map[string]int{}, 0
				for q := range parley.ID(l) {
					if !slices.Contains(path, q) {
						votes[tree[key(append(slices.Clone(path), q))]]++
						children++
					}
				}
				tree[key(path)] = string(r.c.Default)
				for v, n := range votes {
					if 2*n > children {
						tree[key(path)] = v
					}
				}
			}
		}
		out[parley.ID(p)] = tree[key([]parley.ID{r.c.Source})]
	}
	return out
}

// The machine agrees with the oracle on random liars, also on more than m of
// them and beyond the bound, with two, three and many values.
func TestAgainstOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range 400 {
		n := 3 + rng.IntN(5)
		c := config(n, rng.IntN(min(n-1, 4)))
		c.Source = parley.ID(rng.IntN(n))
		c.Default = []byte{"012"[rng.IntN(3)]}
		words := []string{"0", "1", "2", "", strings.Repeat("x", problem.MaxValue)}[:2+rng.IntN(4)]
		r := run{c: c, value: words[rng.IntN(len(words))], faulty: map[parley.ID]faulty.Behaviour{}, seed: uint64(i)}
		for range rng.IntN(n) {
			r.faulty[parley.ID(rng.IntN(n))] = faulty.Behaviour{}
		}
		key := rng.Uint64()
		r.say = func(path []parley.ID, to parley.ID, _ []byte) []byte {
			h := key
			for _, id := range append(slices.Clone(path), to) {
				h = (h ^ uint64(id+1)) * 0x9e3779b97f4a7c15
				h ^= h >> 29
			}
			if h%7 == 0 {
				return nil
			}
			return []byte(words[h%uint64(len(words))])
		}
		if got, want := decisions(r.do(), c), oracle(r); !maps.Equal(got, want) {
			t.Fatalf("case %d, n=%d m=%d source %d faulty %v: decisions %v, the oracle says %v",
				i, n, c.M, c.Source, slices.Sorted(maps.Keys(r.faulty)), got, want)
		}
	}
}

// storm runs seeded runs with the given number of random liars and returns how
// many break agreement or validity.
func storm(c eig.Config, liars, seeds int) (bad int) {
	behaviours := faulty.Named()
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 1))
		r := run{c: c, value: fmt.Sprint(rng.IntN(2)), faulty: map[parley.ID]faulty.Behaviour{}, seed: seed}
		for _, id := range rng.Perm(c.N)[:liars] {
			r.faulty[parley.ID(id)] = behaviours[rng.IntN(len(behaviours))]
		}
		if len(broken(r.do(), r.protocol())) > 0 {
			bad++
		}
	}
	return bad
}

// The theorem, by seeds: n > 3m and at most m faults.
func TestNothingBreaksWithinTheBound(t *testing.T) {
	for _, nm := range [][2]int{{4, 1}, {5, 1}, {7, 2}, {8, 2}, {10, 3}} {
		if bad := storm(config(nm[0], nm[1]), nm[1], 1500); bad > 0 {
			t.Errorf("n=%d m=%d: %d runs broken", nm[0], nm[1], bad)
		}
	}
}

// And beyond it something breaks: n = 3m, or m+1 faults.
func TestSomethingBreaksBeyondTheBound(t *testing.T) {
	for _, test := range []struct{ n, m, liars int }{{3, 1, 1}, {6, 2, 2}, {9, 3, 3}, {4, 1, 2}, {7, 2, 3}} {
		if bad := storm(config(test.n, test.m), test.liars, 1000); bad == 0 {
			t.Errorf("n=%d m=%d with %d liars: nothing broke", test.n, test.m, test.liars)
		}
	}
}
