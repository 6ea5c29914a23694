package phaseking_test

import (
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/agreement/phaseking"
	"parley/parleytest"
)

// exhaust tries every adversary of one liar over the alphabet and silence, round by
// round, from all the given states at once: what the correct processes hold after
// a round is all that the next one depends on, so equal states are tried once.
// What the liar honestly would do adds nothing, for it may say anything. It
// returns the final states, each as what the correct processes hold, and how many
// states and rounds were tried; atPhase sees every state at the end of a phase.
func exhaust(c phaseking.Config, liar parley.ID, begin []string, atPhase func(k int, h *hall)) (
	ends []string, states, tried int,
) {
	h := newHall(phaseking.Rounds(c))
	h.liars.Add(liar)
	front := make(map[string]bool)
	for _, values := range begin {
		fresh := newHall(h.p)
		fresh.liars = h.liars
		for id := range parley.ID(c.N) {
			fresh.propose(id, values[id:id+1])
		}
		front[fresh.save()] = true
	}
	for r := range h.p.Last + 1 {
		next := make(map[string]bool)
		for state := range front {
			tried += parleytest.Every(func(choose func(int) int) {
				h.load(state)
				h.host.choose = choose
				h.round(r, func(s *parley.Step, t *parley.Turn) []parley.Sent {
					// The same choices from every state: the liar's own copy is not part of it.
					t.Honest = t.Honest[:0]
					kind, isKing := due(c.Form, r), int(liar) == r/perPhase(c.Form)
					if kind == phaseking.Value || kind == phaseking.King && isKing {
						m := parley.Msg{Kind: kind, Seq: uint64(r), Body: []byte("0")}
						t.Honest = append(t.Honest, parley.Sent{Msg: m})
					}
					return h.p.Lies(s, t)
				})
				next[h.save()] = true
			})
		}
		states += len(next)
		front = next
		if atPhase != nil && (r+1)%perPhase(c.Form) == 0 {
			for state := range front {
				h.load(state)
				atPhase(r/perPhase(c.Form), h)
			}
		}
	}
	for state := range front {
		h.load(state)
		var held []string
		for id := range parley.Everyone(c.N).Minus(h.liars).All() {
			held = append(held, h.held(id))
		}
		ends = append(ends, strings.Join(held, ""))
	}
	slices.Sort(ends)
	return ends, states, tried
}

// vectors are all initial values of n processes over the given letters.
func vectors(n int, letters string) []string {
	out := []string{""}
	for range n {
		var longer []string
		for _, v := range out {
			for _, letter := range letters {
				longer = append(longer, v+string(letter))
			}
		}
		out = longer
	}
	return out
}

// Exhaustive at m = 1: every adversary of one liar over 0, 1 (and 2) and silence,
// in any seat, all rounds, all initial values. Within the bound every run ends
// with one value, and with the common one if there was one.
func TestExhaustive(t *testing.T) {
	for _, test := range []struct {
		f             phaseking.Form
		n             int
		letters       string
		states, tried int
	}{
		{phaseking.ThreeRound, 4, "01", 442, 19942}, {phaseking.ThreeRound, 4, "012", 1143, 114366},
		{phaseking.TwoRound, 5, "01", 358, 14508},
	} {
		c := config(test.f, test.n, 1)
		for _, v := range test.letters {
			c.Alphabet = append(c.Alphabet, []byte(string(v)))
		}
		states, tried := 0, 0
		for liar := range parley.ID(c.N) {
			ends, s, n := exhaust(c, liar, vectors(c.N, test.letters), func(k int, h *hall) {
				if _, same := h.common(); !same && k != int(liar) {
					t.Errorf("%s: the king of phase %d is correct and they differ", c.Form, k)
				}
			})
			states, tried = states+s, tried+n
			var want []string
			for _, v := range test.letters {
				all := strings.Repeat(string(v), c.N-1)
				want = append(want, all)
				ends, s, n := exhaust(c, liar, []string{strings.Repeat(string(v), c.N)}, nil)
				states, tried = states+s, tried+n
				if len(ends) != 1 || ends[0] != all {
					t.Errorf("%s, liar %d, all start with %c: ends %v", c.Form, liar, v, ends)
				}
			}
			if !slices.Equal(ends, want) {
				t.Errorf("%s, liar %d: ends %v, want %v", c.Form, liar, ends, want)
			}
		}
		if states != test.states || tried != test.tried {
			t.Errorf("%s n=%d over %s: %d states, %d rounds tried; want %d and %d",
				test.f, test.n, test.letters, states, tried, test.states, test.tried)
		}
	}
}

// The same one process short of the bound: agreement breaks, and with two rounds
// validity too.
func TestExhaustiveBeyondTheBound(t *testing.T) {
	for _, test := range []struct {
		f                   phaseking.Form
		n, differs, invalid int
	}{{phaseking.ThreeRound, 3, 6, 0}, {phaseking.TwoRound, 4, 6, 8}} {
		c := config(test.f, test.n, 1)
		differ, invalid := 0, 0
		for liar := range parley.ID(c.N) {
			ends, _, _ := exhaust(c, liar, vectors(c.N, "01"), nil)
			for _, held := range ends {
				if strings.Contains(held, "0") && strings.Contains(held, "1") {
					differ++
				}
			}
			ends, _, _ = exhaust(c, liar, []string{strings.Repeat("1", c.N)}, nil)
			for _, held := range ends {
				if strings.Contains(held, "0") {
					invalid++
				}
			}
		}
		if differ != test.differs || invalid != test.invalid {
			t.Errorf("%s n=%d: %d ends without agreement, %d without validity; want %d and %d",
				c.Form, c.N, differ, invalid, test.differs, test.invalid)
		}
	}
}
