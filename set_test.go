package parley_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
)

// A set behaves like a map of the same processes.
func TestSet(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	var s, other parley.Set
	model, others := map[parley.ID]bool{}, map[parley.ID]bool{}
	for range 20000 {
		id := parley.ID(r.IntN(parley.MaxProcesses))
		switch r.IntN(4) {
		case 0, 1:
			if s.Add(id) == model[id] {
				t.Fatalf("Add(%d) says otherwise", id)
			}
			model[id] = true
		case 2:
			s.Remove(id)
			delete(model, id)
		case 3:
			other.Add(id)
			others[id] = true
			if len(others) > 200 {
				other, others = parley.Set{}, map[parley.ID]bool{}
			}
		}
		want := slices.Sorted(maps.Keys(model))
		if have := slices.Collect(s.All()); !slices.Equal(have, want) || s.Len() != len(want) {
			t.Fatalf("%v, not %v", have, want)
		}
		if probe := parley.ID(r.Uint32()); s.Has(probe) != model[probe] {
			t.Fatalf("Has(%d) is %v", probe, s.Has(probe))
		}
		without := slices.DeleteFunc(slices.Clone(want), func(id parley.ID) bool { return others[id] })
		if have := slices.Collect(s.Minus(other).All()); !slices.Equal(have, without) {
			t.Fatalf("Minus: %v, not %v", have, without)
		}
		both := maps.Clone(model)
		maps.Copy(both, others)
		if have := slices.Collect(s.Plus(other).All()); !slices.Equal(have, slices.Sorted(maps.Keys(both))) {
			t.Fatalf("Plus: %v, not %v and %v", have, want, others)
		}
		if s != parley.SetOf(slices.Collect(maps.Keys(model))...) {
			t.Fatal("equal sets differ")
		}
	}
}

func TestSetEdges(t *testing.T) {
	for n := range parley.MaxProcesses + 1 {
		all := parley.Everyone(n)
		if all.Len() != n || n > 0 && !all.Has(parley.ID(n-1)) || all.Has(parley.ID(n)) {
			t.Errorf("Everyone(%d) is %v", n, slices.Collect(all.All()))
		}
	}
	var s parley.Set
	if s.Has(parley.MaxProcesses) || s.Has(parley.All) {
		t.Error("a process that cannot be is in the empty set")
	}
	for range parley.Everyone(9).All() {
		break // a loop may end early
	}
	s.Add(3)
	s.Remove(parley.MaxProcesses)
	if s.Add(parley.MaxProcesses) || s.Add(parley.All) || s != parley.SetOf(3) {
		t.Error("a process that cannot be was added")
	}
}

// A tally equals a count in maps, whatever the order of the votes.
func TestTally(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2))
	var tally, shuffled parley.Tally
	for range 3000 {
		tally.Reset()
		shuffled.Reset()
		first := map[parley.ID]string{}
		var order []parley.ID
		for range r.IntN(12) {
			id, value := parley.ID(r.IntN(9)), fmt.Sprint(r.IntN(3))
			_, again := first[id]
			if tally.Vote(id, []byte(value)) == again {
				t.Fatalf("the vote of %d, again: %v", id, again)
			}
			if !again {
				first[id], order = value, append(order, id)
			}
		}
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		votes := map[string]int{}
		for _, id := range order {
			shuffled.Vote(id, []byte(first[id]))
			votes[first[id]]++
		}
		best, most, majority := "", 0, "default"
		for _, v := range slices.Sorted(maps.Keys(votes)) {
			if votes[v] > most {
				best, most = v, votes[v]
			}
			if 2*votes[v] > len(order) {
				majority = v
			}
			if tally.Of([]byte(v)) != votes[v] {
				t.Fatalf("%d votes for %s, not %d", tally.Of([]byte(v)), v, votes[v])
			}
		}
		for _, have := range []*parley.Tally{&tally, &shuffled} {
			v, n := have.Best()
			if string(v) != best || n != most || have.Len() != len(order) ||
				string(have.Majority([]byte("default"))) != majority {
				t.Fatalf("%v: best %q with %d of %d, majority %q", votes, v, n, have.Len(),
					have.Majority([]byte("default")))
			}
		}
		if tally.Of([]byte("none of them")) != 0 {
			t.Fatal("votes for nothing")
		}
	}
}

// A tie, a three-way split and no votes have no majority: Majority returns the default.
func TestMajority(t *testing.T) {
	for votes, want := range map[string]string{"": "d", "0": "0", "01": "d", "0011": "d", "001": "0", "012": "d",
		"00012": "0", "0012": "d"} {
		var tally parley.Tally
		for i, v := range votes {
			tally.Vote(parley.ID(i), []byte(string(v)))
		}
		if have := tally.Majority([]byte("d")); !bytes.Equal(have, []byte(want)) {
			t.Errorf("majority of %q is %q, not %q", votes, have, want)
		}
	}
}
