package om_test

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/om"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/lockstep"
)

// liar is an adversary that sends one of the values, or nothing, by a hash of
// its arguments: the same question gets the same answer.
func liar(seed uint64, values ...string) om.Say {
	return func(path []parley.ID, to parley.ID, held []byte) []byte {
		h := seed
		mix := func(x uint64) {
			h = (h ^ x) * 0x9e3779b97f4a7c15
			h ^= h >> 29
		}
		for _, id := range path {
			mix(uint64(id) + 1)
		}
		mix(uint64(to) + 1000)
		for _, b := range held {
			mix(uint64(b) + 2000)
		}
		if i := h % uint64(len(values)+1); i > 0 {
			return []byte(values[i-1])
		}
		return nil
	}
}

// world describes a run: which processes are faulty and what they send.
// Faulty processes do not lie to each other.
type world struct {
	faulty    parley.Set
	say       om.Say
	otherwise string
}

// om is the paper's recursion over the whole system at once: it returns the
// value that each lieutenant gets from OM(m) with the commander at the end of
// the path.
func (w world) om(m int, path []parley.ID, value string, lieutenants []parley.ID) map[parley.ID]string {
	commander := path[len(path)-1]
	v := make(map[parley.ID]string)
	for _, i := range lieutenants { // (1) the commander sends its value
		v[i] = value
		if w.faulty.Has(commander) && !w.faulty.Has(i) {
			v[i] = w.otherwise
			if lie := w.say(path, i, []byte(value)); lie != nil {
				v[i] = string(lie)
			}
		}
	}
	if m == 0 {
		return v
	}
	votes := make(map[parley.ID]map[string]int)
	for _, i := range lieutenants {
		votes[i] = map[string]int{v[i]: 1}
	}
	for _, j := range lieutenants { // (2) each acts as the commander of OM(m-1)
		others := slices.DeleteFunc(slices.Clone(lieutenants), func(i parley.ID) bool { return i == j })
		for i, vj := range w.om(m-1, append(slices.Clone(path), j), v[j], others) {
			votes[i][vj]++
		}
	}
	out := make(map[parley.ID]string)
	for _, i := range lieutenants { // (3) the majority
		out[i] = w.otherwise
		for value, n := range votes[i] {
			if 2*n > len(lieutenants) {
				out[i] = value
			}
		}
	}
	return out
}

// The machines decide what the paper's recursion says, with up to all but one
// process faulty, three values, and any default, which may be one of them.
func TestMachinesDecideAsTheRecursion(t *testing.T) {
	sizes := [][2]int{{2, 0}, {3, 1}, {4, 1}, {4, 2}, {5, 1}, {5, 2}, {6, 2}, {6, 4}, {7, 2}, {8, 3}}
	split := 0
	for seed := range uint64(1200) {
		rng := rand.New(rand.NewPCG(seed, 4))
		size := sizes[rng.IntN(len(sizes))]
		n, m := size[0], size[1]
		c := om.Config{N: n, M: m, Source: parley.ID(rng.IntN(n)), Default: []byte{"012-"[rng.IntN(4)]}}
		how := make(map[parley.ID]faulty.Behavior)
		for _, id := range rng.Perm(n)[:rng.IntN(n)] {
			how[parley.ID(id)] = faulty.Script
		}
		say := liar(seed, "0", "1", "2")
		s := run(told(c, say), c.Source, "1", seed, how)
		lieutenants := slices.Collect(parley.Everyone(n).Minus(parley.SetOf(c.Source)).All())
		w := world{s.History.Faulty, say, string(c.Default)}
		want, distinct := w.om(m, []parley.ID{c.Source}, "1", lieutenants), make(map[string]bool)
		for id, v := range problem.Decisions(&s.History) {
			if id != c.Source && string(v) != want[id] {
				t.Fatalf("seed %d, (%d,%d) source %d, faulty %v: %d decides %s, the recursion %s",
					seed, n, m, c.Source, slices.Collect(s.History.Faulty.All()), id, v, want[id])
			}
			distinct[string(v)] = true
		}
		if len(distinct) > 1 {
			split++
		}
	}
	if split < 50 {
		t.Errorf("only %d runs with unlike decisions: too tame to tell anything", split)
	}
}

// Within the bound OM and EIG decide alike against the same adversary, whether
// the source is correct or not. Their messages differ: EIG also
// relays to itself and to processes on the path, so that it votes on what
// others say that it said where OM uses its own value. Below a path that ends
// in a correct process such votes resolve to what that process said, so within
// the bound the results are the same; beyond it they may differ.
func TestAgreesWithEIG(t *testing.T) {
	differ := func(n, m, faults int, seed uint64) bool {
		c := om.Config{N: n, M: m, Source: parley.ID(seed % uint64(n)), Default: []byte("0")}
		how := draw(seed, n, faults, c.Source, []faulty.Behavior{faulty.Script})
		say := liar(seed, "0", "1", "2")
		gather := eig.Rounds(c)
		gather.Lies = eig.Tell(c, say)
		a := run(told(c, say), c.Source, "1", seed, how)
		b := run(lockstep.Of(gather, lockstep.Simulated), c.Source, "1", seed, how)
		other := problem.Decisions(&b.History)
		for id, v := range problem.Decisions(&a.History) {
			if !bytes.Equal(v, other[id]) {
				return true
			}
		}
		return false
	}
	for _, size := range []struct{ n, m, runs int }{
		{4, 1, 400}, {5, 1, 200}, {7, 2, 200}, {8, 2, 100}, {10, 3, 20},
	} {
		for seed := range uint64(size.runs) {
			if differ(size.n, size.m, size.m, seed) {
				t.Errorf("(%d,%d) seed %d: OM and EIG decide unlike", size.n, size.m, seed)
			}
		}
	}
	unlike := 0
	for seed := range uint64(400) {
		if differ(6, 2, 3, seed) {
			unlike++
		}
	}
	if unlike == 0 {
		t.Error("(6,2) with 3 faults: OM and EIG never differ, so the comparison tells nothing")
	}
}
