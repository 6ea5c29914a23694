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

// run is one simulated run: the faulty processes, their behaviors, and the source's value.
type run struct {
	c      eig.Config
	value  string
	faulty map[parley.ID]faulty.Behavior
	say    eig.Say // if set, replaces what faulty processes send
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

func article(id parley.ID) string { return fmt.Sprint(id + 1) }

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

// A missing value is the default, and is relayed as such.
func TestMissingIsTheDefault(t *testing.T) {
	c := config(4, 1)
	r := run{c: c, value: "1", faulty: map[parley.ID]faulty.Behavior{0: {}}, log: &trace.Log{Keep: true},
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
	s := run{c: c, value: "a", faulty: map[parley.ID]faulty.Behavior{0: {}},
		say: func(_ []parley.ID, to parley.ID, _ []byte) []byte { return []byte(words[to]) }}.do()
	for id, v := range decisions(s, c) {
		if v != "0" {
			t.Errorf("P%d decides %s: two of five are no majority", id+1, v)
		}
	}
}

// Values of any kind: a faulty process invents hundreds, so that the codes widen, and
// validity holds.
func TestManyValues(t *testing.T) {
	c := config(10, 3)
	made := 0
	say := func(path []parley.ID, to parley.ID, _ []byte) []byte {
		made++
		return fmt.Appendf(nil, "%d/%v/%v", made, path, to)
	}
	r := run{c: c, value: "the order of the day", faulty: map[parley.ID]faulty.Behavior{2: {}, 5: {}, 9: {}}, say: say}
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

// oracle is the article's algorithm without optimizations: one map of paths per process.
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
			return held // faulty processes need not lie to each other
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

// The machine agrees with the oracle on random lies, also with more than m faulty
// processes and beyond the bound, with two, three and many values.
func TestAgainstOracle(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for i := range 400 {
		n := 3 + rng.IntN(5)
		c := config(n, rng.IntN(min(n-1, 4)))
		c.Source = parley.ID(rng.IntN(n))
		c.Default = []byte{"012"[rng.IntN(3)]}
		words := []string{"0", "1", "2", "", strings.Repeat("x", problem.MaxValue)}[:2+rng.IntN(4)]
		r := run{c: c, value: words[rng.IntN(len(words))], faulty: map[parley.ID]faulty.Behavior{}, seed: uint64(i)}
		for range rng.IntN(n) {
			r.faulty[parley.ID(rng.IntN(n))] = faulty.Behavior{}
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
