package eig_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/agreement/eig"
	"parley/faulty"
	"parley/lockstep"
	"parley/parleytest"
	"parley/sim"
)

// late returns links on which the source's order misses its round at some processes.
func late(source parley.ID, to parley.Set) []sim.Link {
	return []sim.Link{{From: parley.SetOf(source), To: to, Until: 1, Loss: 1}}
}

// A source that is late, and one of the m faulty, does not notice it:
// observed, it decides as its lieutenants do, whatever they decide.
func TestLateSource(t *testing.T) {
	for _, nm := range [][2]int{{4, 1}, {7, 2}, {10, 3}} {
		c := config(nm[0], nm[1])
		plain, observed := 0, 0
		for seed := range uint64(300) {
			draw := rand.New(rand.NewPCG(seed, 31))
			c.Source = parley.ID(draw.IntN(c.N))
			var to parley.Set
			liars := make(map[parley.ID]faulty.Behavior)
			for i, id := range draw.Perm(c.N) {
				switch id := parley.ID(id); {
				case id == c.Source:
				case len(liars) < c.M-1:
					liars[id] = []faulty.Behavior{faulty.Flip, faulty.Random, faulty.Silent}[draw.IntN(3)]
				case i > 0 && draw.IntN(2) == 0:
					to.Add(id)
				}
			}
			if to.Len() == 0 {
				continue
			}
			differs := func(p lockstep.Protocol) bool {
				s := sim.Run(sim.Options{
					Protocol: lockstep.Of(p, lockstep.Simulated), Seed: seed, Faulty: liars, Links: late(c.Source, to),
					Requests: []sim.Request{{At: c.Source, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("1")}}},
				})
				lieutenants := decisions(s, c)
				values := slices.Sorted(maps.Values(lieutenants))
				if values[0] != values[len(values)-1] {
					t.Fatalf("n=%d, m=%d, seed %d: lieutenants decide %v", c.N, c.M, seed, lieutenants)
				}
				return !same(s, lieutenants, c.Source)
			}
			if differs(eig.Rounds(c)) {
				plain++
			}
			if differs(eig.Observed(c)) {
				observed++
			}
		}
		if plain == 0 || observed > 0 {
			t.Errorf("n=%d, m=%d: in %d runs a source differs, and in %d an observing one", c.N, c.M, plain, observed)
		}
	}
}

// same reports whether the source decided as the lieutenants, which agree.
func same(s *sim.Sim, lieutenants map[parley.ID]string, source parley.ID) bool {
	for _, d := range s.History.Deliveries {
		if d.At == source && d.Msg.Kind == parley.Decide {
			for _, v := range lieutenants {
				return v == string(d.Msg.Body)
			}
		}
	}
	return false
}

func TestObservedSuite(t *testing.T) {
	for _, c := range []eig.Config{
		{N: 4, M: 1, Default: []byte("0")},
		{N: 7, M: 2, Source: 3, Default: []byte("0")},
		{N: 3, M: 0, Default: []byte("0")},
	} {
		t.Run("", func(t *testing.T) { parleytest.Suite(t, lockstep.Of(eig.Observed(c), lockstep.Simulated)) })
	}
}
