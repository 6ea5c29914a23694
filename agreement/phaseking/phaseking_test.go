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
	"parley/lockstep"
	"parley/sim"
)

var forms = []phaseking.Form{phaseking.ThreeRound, phaseking.TwoRound}

func config(f phaseking.Form, n, m int) phaseking.Config {
	return phaseking.Config{Instance: problem.Instance{N: n, M: m, Default: []byte("0")}, Form: f}
}

// say is an adversary: what a faulty process sends another process in a round, in the kind
// of message that is due in it, if anything.
type say func(round int, from, to parley.ID) (value string, said bool)

type run struct {
	c      phaseking.Config
	values []string // initial, by process
	faulty map[parley.ID]faulty.Behavior
	say    say // if set, replaces what faulty processes send
	seed   uint64
}

func (r run) protocol() parley.Protocol {
	p := phaseking.Rounds(r.c)
	if r.say != nil {
		p.Lies = func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
			v, said := r.say(t.Round, t.Self, t.To)
			if !said {
				return nil
			}
			return []parley.Outgoing{{Msg: parley.Msg{Kind: due(r.c.Form, t.Round), Seq: uint64(t.Round), Body: []byte(v)}}}
		}
	}
	return lockstep.Of(p, lockstep.Simulated)
}

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
		Requests: requests,
	})
}

func decisions(s *sim.Sim) map[parley.ID]string {
	out := make(map[parley.ID]string)
	for id, v := range problem.Decisions(&s.History) {
		out[id] = string(v)
	}
	return out
}

func broken(r run, s *sim.Sim) []string {
	var out []string
	for _, q := range r.protocol().Properties {
		if err := q.Check(&s.History); err != nil {
			out = append(out, q.Name)
		}
	}
	return out
}

// inputs draws the initial values: in a third of the draws all are equal.
func inputs(rng *rand.Rand, n int, words ...string) []string {
	out := slices.Repeat([]string{words[rng.IntN(len(words))]}, n)
	if rng.IntN(3) > 0 {
		for i := range out {
			out[i] = words[rng.IntN(len(words))]
		}
	}
	return out
}

// What the package does not promise: in both runs agreement and validity hold,
// and all decide on a value that no correct process had. Correct processes start
// with 1, 2, 3 and so on, and the first king is faulty.
func TestMayDecideAValueThatNoProcessHeld(t *testing.T) {
	for _, f := range forms {
		n := 4 + int(f)
		kings := func(word string, speaks bool) map[parley.ID]string {
			r := run{
				c: config(f, n, 1), values: []string{"1", "1", "2", "3", "4"}[:n],
				faulty: map[parley.ID]faulty.Behavior{0: {}},
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

// Of equally frequent values the two-round form holds the least in byte
// order, whichever processes sent them.
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

// A process that proposes nothing starts with the default, and one that proposes twice with
// the first value.
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
