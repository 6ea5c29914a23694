package seq_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/om"
	"parley/agreement/phaseking"
	"parley/agreement/problem"
	"parley/agreement/sm"
	"parley/faulty"
	"parley/lockstep"
	"parley/mux"
	"parley/parleytest"
	"parley/seq"
	"parley/sim"
	"parley/trace"
)

func instance(source parley.ID) problem.Instance {
	return problem.Instance{N: 4, M: 1, Source: source, Default: []byte("0")}
}

func king() lockstep.Protocol {
	return phaseking.Rounds(phaseking.Config{Instance: instance(0)})
}

func propose(values ...string) []sim.Request {
	var out []sim.Request
	for i, v := range values {
		out = append(out, sim.Request{At: parley.ID(i), Msg: parley.Msg{Kind: parley.Propose, Body: []byte(v)}})
	}
	return out
}

func bits(n int, from uint64) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(from >> i & 1)
	}
	return out
}

func decisions(s *sim.Sim, n int) []string {
	out := make([]string, n)
	for id, v := range problem.Decisions(&s.History) {
		out[id] = string(v)
	}
	return out
}

// script is a liar whose lies depend on receiver, round and place alone, so that
// it tells the same in parts run by themselves, each from its own round 0 on.
func script(first int) faulty.Behaviour {
	return faulty.Behaviour{Name: "script", Choose: func(_ *parley.Step, t *parley.Turn, k, n int) int {
		round := first + int(t.Honest[0].Msg.Seq)
		return int((uint64(round*31+int(t.To)*7+k) * 0x9E3779B97F4A7C15) >> 40 % uint64(n))
	}}
}

// B after A decides what B by itself decides on what A by itself decided, and the
// time, the messages and the bits are those of both.
func TestIsBOnResultOfA(t *testing.T) {
	parts := map[string]lockstep.Protocol{
		"king": king(), "eig": eig.Rounds(instance(1)), "om": om.Rounds(instance(2)),
		"seq": seq.Of("seq", eig.Rounds(instance(3)), king()),
		// Four agreements side by side, the first of which goes on.
		"mux": lockstep.Derive(mux.Rounds("mux", []lockstep.Protocol{eig.Rounds(instance(0)), king()}), "mux", first),
	}
	for nameA, a := range parts {
		for nameB, b := range parts {
			whole := seq.Of("both", a, b)
			if whole.Last != a.Last+b.Last+1 {
				t.Fatalf("%s, then %s: last round %d", nameA, nameB, whole.Last)
			}
			for seed := range uint64(16) {
				run := func(p lockstep.Protocol, from int, values []string) *sim.Sim {
					opt := sim.Options{
						Protocol: lockstep.Of(p, lockstep.Simulated), Seed: seed, Requests: propose(values...), Measure: true,
					}
					if seed%2 == 1 {
						opt.Faulty = map[parley.ID]faulty.Behaviour{parley.ID(seed / 2 % 4): script(from)}
					}
					return sim.Run(opt)
				}
				values := bits(4, seed)
				after := run(a, 0, values)
				// The liar's own copy heard what the faulty process heard, and A's result
				// there is what its copy starts B with.
				starts := decisionsOfAll(after)
				alone := run(b, a.Last+1, starts)
				got := run(whole, 0, values)
				if want := decisions(alone, 4); !slices.Equal(decisions(got, 4), want) {
					t.Fatalf("%s, then %s, seed %d: decided %q, one by one %q on %q", nameA, nameB, seed, decisions(got, 4), want, starts)
				}
				if want := slices.Concat(padded(after.Stats.Sent, a.Last+1), alone.Stats.Sent); !slices.Equal(got.Stats.Sent, want) {
					t.Fatalf("%s, then %s, seed %d: sent %v, one by one %v", nameA, nameB, seed, got.Stats.Sent, want)
				}
			}
			ca, cb, both := a.Cost(4, 1), b.Cost(4, 1), whole.Cost(4, 1)
			if both.Rounds != ca.Rounds+cb.Rounds || !slices.Equal(both.PerRound, slices.Concat(ca.PerRound, cb.PerRound)) ||
				both.AtMost != (ca.AtMost || cb.AtMost) {
				t.Errorf("%s, then %s: cost %v of %v and %v", nameA, nameB, both, ca, cb)
			}
		}
	}
}

// first lets the delivery of part 0 alone through.
func first(s *parley.Step, from parley.ID, m parley.Msg) {
	if m.Origin == 0 && from == 0 && s.Self != from {
		s.Deliver(from, m)
	}
}
