package phaseking_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/phaseking"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
)

var forms = []phaseking.Form{phaseking.ThreeRound, phaseking.TwoRound}

func config(f phaseking.Form, n, m int) phaseking.Config {
	return phaseking.Config{Instance: problem.Instance{N: n, M: m, Default: []byte("0")}, Form: f}
}

// say is an adversary: what a liar tells another process in a round, in the kind
// of message that is due in it, if anything.
type say func(round int, from, to parley.ID) (value string, said bool)

// run is one simulated run.
type run struct {
	c       phaseking.Config
	values  []string // the initial ones, by process
	faulty  map[parley.ID]faulty.Behaviour
	say     say // replaces the liars' own words, if set
	crashes []sim.Crash
	seed    uint64
}

func (r run) protocol() parley.Protocol {
	p := phaseking.Rounds(r.c)
	if r.say != nil {
		p.Lies = func(_ *parley.Step, t *parley.Turn) []parley.Sent {
			v, said := r.say(t.Round, t.Self, t.To)
			if !said {
				return nil
			}
			return []parley.Sent{{Msg: parley.Msg{Kind: due(r.c.Form, t.Round), Seq: uint64(t.Round), Body: []byte(v)}}}
		}
	}
	return lockstep.Of(p, lockstep.Simulated)
}

// due is the kind of message for a round.
func due(f phaseking.Form, round int) parley.Kind {
	if f == phaseking.TwoRound {
		return []parley.Kind{phaseking.Value, phaseking.King}[round%2]
	}
	return []parley.Kind{phaseking.Value, phaseking.Proposal, phaseking.King}[round%3]
}

func (r run) do() *sim.Sim {
	behave := r.faulty
	if r.say != nil {
		behave = maps.Clone(r.faulty)
		for id := range behave {
			behave[id] = faulty.Script
		}
	}
	var requests []sim.Request
	for id, v := range r.values {
		requests = append(requests, sim.Request{
			At: parley.ID(id), Msg: parley.Msg{Kind: parley.Propose, Body: []byte(v)},
		})
	}
	return sim.Run(sim.Options{
		Protocol: r.protocol(), Faulty: behave, Seed: r.seed, Measure: true,
		Requests: requests, Crashes: r.crashes,
	})
}

// decisions returns what the correct processes decided.
func decisions(s *sim.Sim) map[parley.ID]string {
	out := make(map[parley.ID]string)
	for id, v := range problem.Decisions(&s.History) {
		out[id] = string(v)
	}
	return out
}

// broken returns the properties that do not hold.
func broken(r run, s *sim.Sim) []string {
	var out []string
	for _, q := range r.protocol().Properties {
		if err := q.Check(&s.History); err != nil {
			out = append(out, q.Name)
		}
	}
	return out
}

// inputs draws the initial values: all equal in a third of the draws.
func inputs(rng *rand.Rand, n int, words ...string) []string {
	out := slices.Repeat([]string{words[rng.IntN(len(words))]}, n)
	if rng.IntN(3) > 0 {
		for i := range out {
			out[i] = words[rng.IntN(len(words))]
		}
	}
	return out
}

// storm makes seeded runs with the given number of faulty processes, of all the
// behaviours there are, and counts the runs that break each property.
func storm(t *testing.T, c phaseking.Config, liars, seeds int) map[string]int {
	t.Helper()
	behaviours := faulty.Named()
	bad := make(map[string]int)
	lied := 0
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, uint64(c.N)))
		r := run{c: c, values: inputs(rng, c.N, "0", "1"), faulty: map[parley.ID]faulty.Behaviour{}, seed: seed}
		for _, id := range rng.Perm(c.N)[:liars] {
			r.faulty[parley.ID(id)] = behaviours[rng.IntN(len(behaviours))]
		}
		s := r.do()
		lied += int(s.Stats.FromFaulty) - int(s.Stats.RefusedFaulty)
		for _, name := range broken(r, s) {
			bad[name]++
		}
	}
	if lied <= 0 {
		t.Error("nothing that a faulty process said was taken in")
	}
	return bad
}

// The theorem, by seeds: agreement and validity with n > 3m and three rounds a
// phase, and with n > 4m and two.
func TestNothingBreaksWithinTheBound(t *testing.T) {
	for _, test := range []struct {
		f           phaseking.Form
		n, m, seeds int
	}{
		{phaseking.ThreeRound, 4, 1, 1500}, {phaseking.ThreeRound, 5, 1, 300}, {phaseking.ThreeRound, 7, 2, 500},
		{phaseking.ThreeRound, 10, 3, 200}, {phaseking.ThreeRound, 13, 4, 100},
		{phaseking.TwoRound, 5, 1, 1500}, {phaseking.TwoRound, 6, 1, 300}, {phaseking.TwoRound, 9, 2, 500},
		{phaseking.TwoRound, 13, 3, 150}, {phaseking.TwoRound, 17, 4, 60},
	} {
		if bad := storm(t, config(test.f, test.n, test.m), test.m, test.seeds); len(bad) > 0 {
			t.Errorf("%s n=%d m=%d: broken in runs: %v", test.f, test.n, test.m, bad)
		}
	}
}

// And beyond it agreement and validity break, and nothing else does: n = 3m (4m),
// or m+1 faults. Only with three rounds and n = 3m validity still holds: for the
// n-m correct ones of one mind to outvote the liars it takes no more than n > 2m.
func TestSomethingBreaksBeyondTheBound(t *testing.T) {
	for _, test := range []struct {
		f                  phaseking.Form
		n, m, liars, seeds int
		valid              bool
	}{
		{phaseking.ThreeRound, 3, 1, 1, 500, true}, {phaseking.ThreeRound, 6, 2, 2, 1500, true},
		{phaseking.ThreeRound, 4, 1, 2, 300, false}, {phaseking.ThreeRound, 7, 2, 3, 600, false},
		{phaseking.TwoRound, 4, 1, 1, 300, false}, {phaseking.TwoRound, 8, 2, 2, 600, false},
		{phaseking.TwoRound, 5, 1, 2, 300, false}, {phaseking.TwoRound, 9, 2, 3, 300, false},
	} {
		bad := storm(t, config(test.f, test.n, test.m), test.liars, test.seeds)
		if bad[problem.Agreement] == 0 || bad[problem.Validity] == 0 != test.valid ||
			bad[problem.Termination]+bad[problem.Integrity] > 0 {
			t.Errorf("%s n=%d m=%d with %d liars: broken in runs: %v", test.f, test.n, test.m, test.liars, bad)
		}
	}
}

// Crashes in every round, before and between any two sends.
func TestCrashes(t *testing.T) {
	runs := 0
	for _, f := range forms {
		n := 4 + int(f)
		last := phaseking.Rounds(config(f, n, 1)).Last
		for bits := range 1 << n {
			for id := range parley.ID(n) {
				for k := range (last + 1) * n {
					r := run{c: config(f, n, 1), faulty: map[parley.ID]faulty.Behaviour{id: faulty.Crash(k/n, k%n)}}
					for i := range n {
						r.values = append(r.values, fmt.Sprint(bits>>i&1))
					}
					runs++
					if bad := broken(r, r.do()); len(bad) > 0 {
						t.Errorf("%s %v, %d crashes in round %d after %d sends: broken %v", f, r.values, id, k/n, k%n, bad)
					}
				}
			}
		}
	}
	if want := 16*4*6*4 + 32*5*4*5; runs != want {
		t.Errorf("%d runs, want %d", runs, want)
	}
}

// Crashes of the simulator: in every step that a process makes, at every effect.
func TestCrashesBetweenEffects(t *testing.T) {
	for _, f := range forms {
		n := 4 + int(f)
		values := strings.Split("10110"[:n], "")
		for id := range parley.ID(n) {
			crashed := true
			for step := 1; crashed; step++ {
				for effects := range 3 {
					r := run{c: config(f, n, 1), values: values}
					r.crashes = []sim.Crash{{At: id, Step: step, Effects: effects}}
					s := r.do()
					crashed = s.Stats.Crashes > 0
					if bad := broken(r, s); len(bad) > 0 {
						t.Errorf("%s: %d crashes in step %d after %d effects: broken %v", f, id, step, effects, bad)
					}
				}
			}
		}
	}
}

// What the package does not promise: in both runs agreement and validity hold,
// and all decide on a value that no correct process had. Correct processes start
// with 1, 2, 3 and so on, and the first king is faulty.
func TestMayDecideWhatNobodyHeld(t *testing.T) {
	for _, f := range forms {
		n := 4 + int(f)
		kings := func(word string, speaks bool) map[parley.ID]string {
			r := run{
				c: config(f, n, 1), values: []string{"1", "1", "2", "3", "4"}[:n],
				faulty: map[parley.ID]faulty.Behaviour{0: {}},
				say: func(round int, _, _ parley.ID) (string, bool) {
					return word, speaks && due(f, round) == phaseking.King
				},
			}
			s := r.do()
			if bad := broken(r, s); len(bad) > 0 {
				t.Errorf("%s, king says %q (%v): broken %v", f, word, speaks, bad)
			}
			return decisions(s)
		}
		for id, v := range kings("9", true) {
			if v != "9" {
				t.Errorf("%s: the king said 9 and %d decides %s", f, id, v)
			}
		}
		for id, v := range kings("", false) {
			if v != "0" {
				t.Errorf("%s: the king was silent and %d decides %s", f, id, v)
			}
		}
	}
}

// Of values that are equally frequent the two-round form holds the least, in the
// order of bytes, whoever said them.
func TestTieTakesTheLeast(t *testing.T) {
	for _, values := range []string{"bbaac", "aabbc", "cabab"} {
		r := run{c: config(phaseking.TwoRound, 5, 0), values: strings.Split(values, "")}
		for id, v := range decisions(r.do()) {
			if v != "a" {
				t.Errorf("values %s: %d decides %s, want a", values, id, v)
			}
		}
	}
}

// Who proposes nothing starts with the default, and who proposes twice with the
// first.
func TestInitialValues(t *testing.T) {
	for _, f := range forms {
		r := run{c: config(f, 6, 1)}
		r.c.Default = []byte("none")
		for id, v := range decisions(r.do()) {
			if v != "none" {
				t.Errorf("%s: nobody proposed and %d decides %s", f, id, v)
			}
		}
		p := phaseking.Rounds(r.c)
		h := newHall(p)
		h.reload = true
		for id := range h.procs {
			for _, v := range []string{strings.Repeat("x", problem.MaxValue+1), "first", "second"} {
				h.propose(parley.ID(id), v)
			}
		}
		for round := range p.Last + 1 {
			h.round(round, nil)
		}
		if !h.allHold("first") || len(h.decided) != 6 {
			t.Errorf("%s: decided %v, want first", f, h.decided)
		}
	}
}
