package phaseking_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/phaseking"
	"parley/agreement/problem"
	"parley/faulty"
)

// oracle is the algorithm without optimizations, with a view of the whole system: who holds
// what, and who receives what from whom, in maps of text.
func oracle(r run) map[parley.ID]string {
	n, m := r.c.N, r.c.M
	correct := func(id parley.ID) bool { _, lies := r.faulty[id]; return !lies }
	holds := make(map[parley.ID]string)
	for id := range parley.ID(n) {
		holds[id] = r.values[id]
	}
	round := 0
	// heard returns what one process receives in the current round, by sender, if the
	// correct ones send what is in the map. It ranges over the correct ones.
	heard := func(to parley.ID, honest map[parley.ID]string) map[parley.ID]string {
		out := make(map[parley.ID]string)
		for from := range parley.ID(n) {
			v, said := honest[from]
			if !correct(from) {
				v, said = r.say(round, from, to)
			}
			if said && len(v) <= problem.MaxValue {
				out[from] = v
			}
		}
		return out
	}
	// most returns the most frequent word and its count; of several the first in
	// byte order.
	most := func(words map[parley.ID]string) (string, int) {
		count := make(map[string]int)
		for _, v := range words {
			count[v]++
		}
		best := ""
		for _, v := range slices.Sorted(maps.Keys(count)) {
			if count[v] > count[best] {
				best = v
			}
		}
		return best, count[best]
	}
	for phase := range m + 1 {
		king := parley.ID(phase)
		sure := make(map[parley.ID]bool)
		after, proposes := maps.Clone(holds), make(map[parley.ID]string)
		for id := range parley.ID(n) {
			v, count := most(heard(id, holds))
			switch {
			case r.c.Form == phaseking.TwoRound:
				after[id], sure[id] = v, float64(count) > float64(n)/2+float64(m)
			case count >= n-m:
				proposes[id] = v
			}
		}
		holds = maps.Clone(after)
		round++
		if r.c.Form == phaseking.ThreeRound {
			for id := range parley.ID(n) {
				words := heard(id, proposes)
				if v, count := most(words); count > m {
					after[id] = v
				}
				same := 0
				for _, v := range words {
					if v == after[id] {
						same++
					}
				}
				sure[id] = same >= n-m
			}
			holds = maps.Clone(after)
			round++
		}
		for id := range parley.ID(n) {
			word, said := heard(id, map[parley.ID]string{king: holds[king]})[king]
			if !said {
				word = string(r.c.Default)
			}
			if !sure[id] {
				after[id] = word
			}
		}
		holds = maps.Clone(after)
		round++
	}
	maps.DeleteFunc(holds, func(id parley.ID, _ string) bool { return !correct(id) })
	return holds
}

// scripted draws a run whose faulty processes send anything, by a hash of receiver and
// time: also with more than m of them, and in systems beyond the bound.
func scripted(rng *rand.Rand) run {
	n := 2 + rng.IntN(8)
	r := run{c: config(forms[rng.IntN(2)], n, rng.IntN(min(n-1, 4))), faulty: map[parley.ID]faulty.Behavior{}}
	r.c.Default = []byte{"012"[rng.IntN(3)]}
	words := []string{"0", "1", "2", "", strings.Repeat("x", problem.MaxValue)}[:2+rng.IntN(4)]
	r.values = inputs(rng, n, words...)
	for range rng.IntN(n) {
		r.faulty[parley.ID(rng.IntN(n))] = faulty.Behavior{}
	}
	words = append(words, strings.Repeat("y", problem.MaxValue+1))
	key := rng.Uint64()
	r.say = func(round int, from, to parley.ID) (string, bool) {
		h := key
		for _, x := range []uint64{uint64(round), uint64(from), uint64(to)} {
			h = (h ^ (x + 1)) * 0x9e3779b97f4a7c15
			h ^= h >> 29
		}
		return words[h%uint64(len(words))], h>>32%7 != 0
	}
	return r
}

// The machines decide as the oracle does, whatever the faulty processes send.
func TestAgainstOracle(t *testing.T) {
	differ, refused := 0, uint64(0)
	for seed := range uint64(2000) {
		r := scripted(rand.New(rand.NewPCG(seed, 7)))
		s := r.do()
		refused += s.Stats.RefusedFaulty
		got, want := decisions(s), oracle(r)
		if !maps.Equal(got, want) {
			t.Fatalf("seed %d, %s n=%d m=%d, %v, faulty %v: decisions %.40v, the oracle says %.40v",
				seed, r.c.Form, r.c.N, r.c.M, r.values, slices.Sorted(maps.Keys(r.faulty)), got, want)
		}
		if len(slices.Compact(slices.Sorted(maps.Values(got)))) > 1 {
			differ++
		}
	}
	if differ < 50 || refused < 1000 {
		t.Errorf("only %d runs ended in disagreement, %d words were refused: the liars are tame", differ, refused)
	}
}
