package interactive_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/interactive"
	"parley/agreement/phaseking"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/lockstep"
	"parley/parleytest"
	"parley/sim"
)

// Byzantine agreement from consensus (question 3) is the consensus on what each
// process received from the source, the default if that was nothing.
func TestIsConsensusOnReceivedValues(t *testing.T) {
	in := problem.Instance{N: 7, M: 2, Source: 3, Default: []byte("0")}
	king := func(in problem.Instance) lockstep.Protocol { return phaseking.Rounds(phaseking.Config{Instance: in}) }
	for seed := range uint64(50) {
		draw := rand.New(rand.NewPCG(seed, 10))
		heard := make([]string, in.N)
		for i := range heard {
			heard[i] = []string{"0", "1", "2", ""}[draw.IntN(4)]
		}
		// The source sends any values in its announcement round, and is honest afterwards.
		split := faulty.Behavior{Name: "split", Tell: func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
			frame := t.Honest[0]
			switch {
			case frame.Msg.Seq > 0:
			case heard[t.To] == "":
				return nil
			default:
				frame.Msg.Body = parley.AppendMsg(nil, 0, parley.Msg{Kind: interactive.Announced, Body: []byte(heard[t.To])})
			}
			return []parley.Outgoing{frame}
		}}
		s := sim.Run(sim.Options{
			Protocol: lockstep.Of(interactive.FromSource(in, king(in)), lockstep.Simulated), Seed: seed,
			Faulty: map[parley.ID]faulty.Behavior{3: split}, Requests: []sim.Request{{At: 3, Msg: parley.Msg{
				Kind: parley.Propose, Body: []byte("1"),
			}}},
		})
		starts := slices.Clone(heard)
		starts[3] = "1"
		for i, v := range starts {
			if v == "" {
				starts[i] = "0"
			}
		}
		alone := sim.Run(sim.Options{
			Protocol: lockstep.Of(king(in), lockstep.Simulated), Seed: seed, Requests: propose(starts...),
			Faulty: map[parley.ID]faulty.Behavior{3: faulty.Honest},
		})
		got, want := fmt.Sprintf("%s", problem.Decisions(&s.History)), fmt.Sprintf("%s", problem.Decisions(&alone.History))
		if got != want || len(problem.Decisions(&s.History)) != 6 {
			t.Fatalf("seed %d: on %q %s is decided, and by consensus alone %s", seed, heard, got, want)
		}
	}
}

// Only the first announcement of the source is accepted.
func TestAnnouncementsRefused(t *testing.T) {
	in := problem.Instance{N: 4, M: 1, Default: []byte("0")}
	p := lockstep.Of(interactive.FromSource(in, eig.Rounds(in)), lockstep.Simulated)
	say := func(list ...parley.Msg) faulty.Behavior {
		return faulty.Behavior{Tell: func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
			frame := t.Honest[0]
			if frame.Msg.Seq == 0 {
				frame.Msg.Body = nil
				for _, m := range list {
					frame.Msg.Body = parley.AppendMsg(frame.Msg.Body, 0, m)
				}
			}
			return []parley.Outgoing{frame}
		}}
	}
	one := parley.Msg{Kind: interactive.Announced, Body: []byte("1")}
	large, kind, number := one, one, one
	large.Body = bytes.Repeat([]byte("1"), problem.MaxValue+1)
	kind.Kind++
	number.Seq = 1
	for _, test := range []struct {
		liar    parley.ID
		said    []parley.Msg
		refused map[string]uint64 // by three correct processes
	}{
		{0, []parley.Msg{one, one}, map[string]uint64{"second or oversized announcement": 3}},
		{0, []parley.Msg{large}, map[string]uint64{"second or oversized announcement": 3}},
		{0, []parley.Msg{kind, number}, map[string]uint64{"message not due in this round": 6}},
		{2, []parley.Msg{one}, map[string]uint64{"announcement by another than the source": 3}},
	} {
		s := sim.Run(sim.Options{
			Protocol: p, Faulty: map[parley.ID]faulty.Behavior{test.liar: say(test.said...)},
			Requests: []sim.Request{{Msg: parley.Msg{Kind: parley.Propose, Body: []byte("1")}}},
		})
		for why, times := range test.refused {
			if s.Stats.Refused[why] != times || len(s.Stats.Refused) != 1 {
				t.Errorf("%v: refused %v, want %v", test.said, s.Stats.Refused, test.refused)
			}
		}
		parleytest.Judge(t, p, s, p.Name)
	}
}
