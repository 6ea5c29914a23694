package phaseking

import (
	"fmt"

	"parley"
	"parley/agreement/problem"
)

var formNames = [...]string{ThreeRound: "threeround", TwoRound: "tworound"}

func (f Form) String() string { return formNames[f] }

// MarshalText writes the form as on the command line.
func (f Form) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (f *Form) UnmarshalText(text []byte) error {
	for i, name := range formNames {
		if name == string(text) {
			*f = Form(i)
			return nil
		}
	}
	return fmt.Errorf("unknown form %q: allowed are %s and %s", text, ThreeRound, TwoRound)
}

// Most returns the largest m that n processes tolerate in this form.
func (f Form) Most(n int) int {
	if f == TwoRound {
		return (n - 1) / 4
	}
	return problem.MostOral(n)
}

// Bound returns why n processes cannot tolerate m faults in this form, or nil if they
// can.
func (f Form) Bound(n, m int) error {
	if f == ThreeRound {
		return problem.OralBound(n, m)
	}
	if n > 4*m {
		return nil
	}
	return fmt.Errorf("with two rounds a phase %d processes tolerate at most %d faults, not %d: "+
		"n > 4m is necessary for the votes of the n-m correct ones to exceed n/2 + m", n, f.Most(n), m)
}

// promises adds to the promises of consensus what this protocol does not promise.
func (f Form) promises(a parley.RunConditions) []parley.Promise {
	bound, paper := "n > 3m", "Berman, Garay, Perry 1989"
	if f == TwoRound {
		bound, paper = "n > 4m", "after Berman, Garay 1989"
	}
	out := problem.Promises(a, f.Bound,
		bound+": one of m+1 kings is correct, and no later king changes a value that all correct "+
			"processes hold ("+paper+")")
	for i := range out {
		if out[i].Property == problem.Validity && out[i].Holds {
			out[i].Because += "; if the initial values differ, the decision may be a value that no " +
				"correct process had"
		}
	}
	return parley.Proved(out, proofs)
}

// Cost counts a message as one value, of one bit. In each phase every process sends its value to all others, and the
// king sends its own value. In the three-round form every process may also propose a value. Without faults, only the
// number of proposals can be smaller, if the initial values differ.
func (f Form) Cost(n, m int) parley.Cost {
	one := parley.Traffic{Messages: 1, Bits: 1}
	fromKing := one.Times(uint64(n - 1))
	fromAll := fromKing.Times(uint64(n))
	cost := parley.Cost{Rounds: len(phases[f]) * (m + 1), AtMost: f == ThreeRound}
	for range m + 1 {
		for _, kind := range phases[f] {
			if kind == King {
				cost.PerRound = append(cost.PerRound, fromKing)
			} else {
				cost.PerRound = append(cost.PerRound, fromAll)
			}
		}
	}
	return cost
}

// size: every message is one message of the paper, a value.
func size(_ parley.Env, m parley.Msg) parley.Traffic {
	return parley.Traffic{Messages: 1, Bits: parley.ValueBits(m.Body)}
}
