package watch_test

import (
	"testing"

	"parley"
	"parley/faulty"
	"parley/lockstep"
	"parley/membership/watch"
	"parley/sim"
)

func run(n int, seed uint64, liars map[parley.ID]faulty.Behavior) *sim.Sim {
	p := watch.New(watch.Config{N: n, Rounds: 4}, lockstep.Simulated)
	return sim.Run(sim.Options{Protocol: p, Seed: seed, Faulty: liars})
}

// Omission is detected in the synchronous model (lecture, model of processor failures): all name the silent
// process, in the round in which it falls silent, and no other process.
func TestSilentIsNamed(t *testing.T) {
	for _, test := range []struct {
		how   faulty.Behavior
		round uint64
	}{{faulty.Silent, 0}, {faulty.Crash(2, 0), 2}, {faulty.Crash(1, 0), 1}} {
		s := run(5, 7, map[parley.ID]faulty.Behavior{3: test.how})
		named := 0
		for _, i := range s.History.Indications {
			if i.At == 3 {
				continue
			}
			named++
			if i.Msg.Origin != 3 || i.Msg.Seq != test.round {
				t.Errorf("%s: process %d names %d in round %d", test.how.Name, i.At, i.Msg.Origin, i.Msg.Seq)
			}
		}
		if named != 4 {
			t.Errorf("%s: named by %d of 4", test.how.Name, named)
		}
	}
}

// No correct process names a correct one, whichever processes omit to send or to receive, even in the middle
// of a round.
func TestAccuracy(t *testing.T) {
	named := 0
	for seed := range uint64(500) {
		liars := map[parley.ID]faulty.Behavior{
			parley.ID(seed % 5): faulty.SendOmission, parley.ID((seed + 2) % 5): faulty.ReceiveOmission,
			parley.ID((seed + 3) % 5): faulty.Crash(int(seed%4), int(seed%5)),
		}
		s := run(5, seed, liars)
		for _, property := range watch.Rounds(watch.Config{N: 5, Rounds: 4}).Properties {
			err := property.Check(&s.History)
			if property.Mode == parley.Sometimes && err == nil {
				named++
			} else if property.Mode != parley.Sometimes && err != nil {
				t.Fatalf("seed %d: %s: %v", seed, property.Name, err)
			}
		}
	}
	if named < 400 {
		t.Errorf("somebody was named in %d of 500 runs", named)
	}
}

// Without the bound on delays, slow processes are named: this run is beyond the model.
func TestLateIsNamedToo(t *testing.T) {
	p := watch.New(watch.Config{N: 4, Rounds: 2}, lockstep.Simulated)
	s := sim.Run(sim.Options{Protocol: p, Links: []sim.Link{{
		From: parley.SetOf(1), Delay: sim.Delay{Least: 1500, Most: 1500},
	}}})
	if p.Properties[0].Check(&s.History) == nil {
		t.Error("a slow process was not named")
	}
	for _, v := range parley.Judge(p, s.RunConditions(), &s.History) {
		if v.Violated() {
			t.Errorf("%s was promised although messages were late", v.Property.Name)
		}
	}
}

// A second message in one round is refused, and so is any other message.
func TestSecondMessage(t *testing.T) {
	p := watch.Rounds(watch.Config{N: 3, Rounds: 2}).New(0)
	h := &refusals{}
	s := &parley.Step{N: 3, Host: h}
	p.Emit(s, 0)
	p.Absorb(s, 0, 1, parley.Msg{Kind: 1})
	p.Absorb(s, 0, 1, parley.Msg{Kind: 1})
	p.Absorb(s, 0, 2, parley.Msg{Kind: 2})
	p.Close(s, 0)
	if h.n != 2 {
		t.Errorf("refused %d", h.n)
	}
	if last := s.Effects[len(s.Effects)-1]; last.Op != parley.OpIndicate || last.Msg.Origin != 2 || len(s.Effects) != 2 {
		t.Errorf("%v", s.Effects)
	}
}

type refusals struct {
	parley.Host
	n int
}

func (r *refusals) Refused(_, _ parley.ID, _ string) { r.n++ }
