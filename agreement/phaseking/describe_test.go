package phaseking_test

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/phaseking"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/lockstep"
	"parley/parleytest"
)

// A run without faults sends what Cost says; with different initial values some
// processes may have nothing to propose. Lies do not make the others send more.
func TestCostIsMeasured(t *testing.T) {
	for _, f := range forms {
		for _, nm := range [][2]int{{4, 1}, {5, 0}, {7, 2}, {9, 2}, {5, 3}} {
			c := config(f, nm[0], nm[1])
			want := phaseking.Rounds(c).Cost(c.N, c.M)
			if want.Rounds != phaseking.Rounds(c).Last+1 {
				t.Errorf("%s n=%d m=%d: %d rounds", f, c.N, c.M, want.Rounds)
			}
			s := run{c: c, values: slices.Repeat([]string{"1"}, c.N)}.do()
			if !slices.Equal(s.Stats.Sent, want.PerRound) {
				t.Errorf("%s n=%d m=%d: measured %v, want %v", f, c.N, c.M, s.Stats.Sent, want.PerRound)
			}
			fewer := false
			for seed := range uint64(30) {
				rng := rand.New(rand.NewPCG(seed, 5))
				r := run{c: c, values: inputs(rng, c.N, "0", "1"), seed: seed}
				if seed%2 == 1 {
					r.faulty = map[parley.ID]faulty.Behavior{parley.ID(rng.IntN(c.N)): faulty.Random}
				}
				for round, sent := range r.do().Stats.Sent {
					fewer = fewer || sent.Messages < want.PerRound[round].Messages && len(r.faulty) == 0
					if sent.Messages > want.PerRound[round].Messages || sent.Bits > want.PerRound[round].Bits {
						t.Errorf("%s n=%d m=%d seed %d round %d: measured %v, want at most %v",
							f, c.N, c.M, seed, round, sent, want.PerRound[round])
					}
				}
			}
			if fewer && !want.AtMost {
				t.Errorf("%s n=%d m=%d: fewer messages than the exact count", f, c.N, c.M)
			}
		}
	}
	three := phaseking.ThreeRound.Cost(7, 2).PerRound[:3]
	if three[0].Messages != 42 || three[1].Messages != 42 || three[2].Messages != 6 {
		t.Errorf("a phase of seven processes: %v", three)
	}
}

// Bound and Most return the bounds, and the most faults that a form tolerates.
func TestBound(t *testing.T) {
	for _, f := range forms {
		per := 3 + int(f)
		for n := 2; n < 40; n++ {
			for m := range 14 {
				if got := f.Bound(n, m) == nil; got != (n > per*m) || got != (m <= f.Most(n)) {
					t.Errorf("%s: n=%d m=%d: %v, at most %d", f, n, m, f.Bound(n, m), f.Most(n))
				}
			}
		}
	}
}

// Promises says what holds, and why.
func TestPromises(t *testing.T) {
	for _, test := range []struct {
		f            phaseking.Form
		n, m, faulty int
		holds        bool
		because      string
	}{
		{phaseking.ThreeRound, 4, 1, 1, true, "n > 3m"}, {phaseking.ThreeRound, 4, 1, 2, false, "2 processes are faulty"},
		{phaseking.ThreeRound, 3, 1, 0, false, "n > 3m"}, {phaseking.TwoRound, 4, 1, 1, false, "n > 4m"},
		{phaseking.TwoRound, 5, 1, 1, true, "n > 4m"},
	} {
		p := phaseking.Rounds(config(test.f, test.n, test.m))
		promises := p.Promises(parley.RunConditions{N: test.n, M: test.m, Faulty: test.faulty})
		for _, promise := range promises {
			isRule := promise.Property == problem.Agreement || promise.Property == problem.Validity
			if promise.Holds != (test.holds || !isRule) || isRule && !strings.Contains(promise.Because, test.because) {
				t.Errorf("%+v: %+v", test, promise)
			}
			warns := strings.Contains(promise.Because, "a value that no correct process had")
			if warns != (promise.Property == problem.Validity && test.holds) {
				t.Errorf("%+v: %+v", test, promise)
			}
		}
		if len(promises) != len(p.Properties) {
			t.Errorf("%d promises for %d properties", len(promises), len(p.Properties))
		}
	}
}

// The flags work on a protocol of the other form.
func TestFlags(t *testing.T) {
	parse := func(args ...string) (parley.Protocol, error) {
		fs := flag.NewFlagSet("phaseking", flag.ContinueOnError)
		fs.SetOutput(io.Discard)
		remake := phaseking.New(config(phaseking.ThreeRound, 4, 1), lockstep.Simulated).Flags(fs)
		if err := fs.Parse(args); err != nil {
			return parley.Protocol{}, err
		}
		return remake(func(string) (parley.ID, error) { return 0, nil })
	}
	for args, want := range map[string]string{
		"":                        "n=4 m=1 rounds=6",
		"-n 10":                   "n=10 m=3 rounds=12",
		"-n 10 -form tworound":    "n=10 m=2 rounds=6",
		"-form tworound -n 9":     "n=9 m=2 rounds=6",
		"-form threeround -m 0":   "n=4 m=0 rounds=3",
		"-form tworound -n 8 -m2": "flag provided but not defined: -m2",
		"-form fourround":         `form "fourround": allowed are threeround and tworound`,
		"-n 1":                    "allowed are 2 to 256",
	} {
		p, err := parse(strings.Fields(args)...)
		var got string
		if err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprintf("n=%d m=%d rounds=%d", p.N, p.M, p.Cost(p.N, p.M).Rounds)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", args, got, want)
		}
	}
}

// Lies: in each choice 0 is honest and the last is silence, with all other values
// of the alphabet between; a faulty process may propose where an honest one would not; and in
// the king's round others have no choice.
func TestLies(t *testing.T) {
	c := config(phaseking.ThreeRound, 4, 1)
	c.Alphabet = [][]byte{[]byte("a"), []byte("b"), []byte("c")}
	p := phaseking.Rounds(c)
	for _, test := range []struct {
		round  int
		honest string
		want   []string
	}{
		{0, "b", []string{"b", "a", "c", ""}},
		{3, "z", []string{"z", "a", "b", "c", ""}},
		{1, "b", []string{"propose b", "propose a", "propose c", ""}},
		{4, "", []string{"", "propose a", "propose b", "propose c", ""}},
		{2, "b", []string{"king: b", "king: a", "king: c", ""}},
		{5, "", []string{""}},
	} {
		turn := &parley.Turn{Self: 0, To: 1, Round: test.round}
		if test.honest != "" {
			m := parley.Msg{Kind: due(c.Form, test.round), Seq: uint64(test.round), Body: []byte(test.honest)}
			turn.Honest = []parley.Outgoing{{Path: 5, Msg: m}}
		}
		var got []string
		parleytest.Every(func(choose func(int) int) {
			text := ""
			for _, sent := range p.Lies(&parley.Step{N: 4, Host: &host{choose: choose}}, turn) {
				for row := range p.Explain(parley.Env{}, sent.Msg, nil) {
					text += row
				}
				if sent.Msg.Seq != uint64(test.round) || len(turn.Honest) > 0 && sent.Path != 5 {
					t.Errorf("round %d: %v", test.round, sent)
				}
			}
			got = append(got, text)
		})
		if !slices.Equal(got, test.want) {
			t.Errorf("round %d, honest %q: %q, want %q", test.round, test.honest, got, test.want)
		}
	}
}
