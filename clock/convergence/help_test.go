package convergence_test

import (
	"testing"

	"parley"
	"parley/clock/convergence"
	"parley/faulty"
	"parley/sim"
)

// planned returns the plan of a system.
func planned(t *testing.T, c convergence.Config) convergence.Plan {
	t.Helper()
	plan, err := c.Plan()
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// broken returns the first property that does not hold of a run, or nil.
func broken(p parley.Protocol, h *parley.History) error {
	for _, property := range p.Properties {
		if err := property.Check(h); err != nil {
			return err
		}
	}
	return nil
}

// corners returns the deliveries of a kind at correct processes.
func corners(s *sim.Sim, kind parley.Kind) (found []parley.ExternalEvent) {
	for _, d := range s.History.Deliveries {
		if d.Msg.Kind == kind && s.History.Correct(d.At) {
			found = append(found, d)
		}
	}
	return found
}

// times returns when these deliveries were.
func times(found []parley.ExternalEvent) (when []parley.Tick) {
	for _, d := range found {
		when = append(when, d.When)
	}
	return when
}

// liars returns the last m processes as faulty, all with one behavior.
func liars(n, m int, how faulty.Behavior) map[parley.ID]faulty.Behavior {
	out := make(map[parley.ID]faulty.Behavior)
	for i := n - m; i < n; i++ {
		out[parley.ID(i)] = how
	}
	return out
}

// worst returns the worst liar, for messages to and from it that take the least time: it shows process 0 the
// latest time within the threshold, and the others the earliest.
func worst(plan convergence.Plan) faulty.Behavior {
	return faulty.Behavior{
		Name: "worst", Model: parley.OralByzantineFaults,
		Tell: func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
			for i, one := range t.Honest {
				if one.Msg.Kind != convergence.Time {
					continue
				}
				shown := parley.Tick(one.Msg.Seq) + plan.Least + plan.Threshold
				if t.To != 0 {
					shown -= 2 * plan.Threshold
				}
				t.Honest[i].Msg.Value = uint64(shown)
			}
			return t.Honest
		},
	}
}

// worstRun returns a run in which everything is as bad as the theorem allows: m of the worst liars, one clock
// as fast as allowed and all others as slow, and messages to processes with a higher number that take as long
// as a round trip permits, so that each reading is wrong by eps.
func worstRun(p parley.Protocol, plan convergence.Plan) sim.Options {
	slow := plan.Least + 2*plan.Eps
	opt := sim.Options{
		Protocol: p, Faulty: liars(plan.N, plan.M, worst(plan)),
		Delay: sim.Delay{Least: plan.Least, Most: plan.Least},
	}
	for i := range plan.N {
		clock := sim.Clock{At: parley.ID(i), Drift: -plan.Rho}
		if i == 0 {
			clock.Drift = plan.Rho
		}
		opt.Clocks = append(opt.Clocks, clock)
		for j := i + 1; j < plan.N-plan.M; j++ {
			opt.Links = append(opt.Links, sim.Link{
				From: parley.SetOf(parley.ID(i)), To: parley.SetOf(parley.ID(j)),
				Delay: sim.Delay{Least: slow, Most: slow},
			})
		}
	}
	return opt
}

// hand drives one machine without a simulator.
type hand struct {
	*testing.T
	machine parley.Machine
	step    parley.Step
	refused []string
}

func newHand(t *testing.T, c convergence.Config, self parley.ID) *hand {
	h := &hand{T: t, machine: convergence.New(c).New(self)}
	h.step = parley.Step{Self: self, N: c.N, Host: h}
	return h
}

// at runs a clause at the given time and returns the effects.
func (h *hand) at(now parley.Tick, clause func(m parley.Machine, s *parley.Step)) []parley.Effect {
	h.step.Now, h.step.Effects = now, nil
	h.refused = nil
	clause(h.machine, &h.step)
	return h.step.Effects
}

func (h *hand) start(now parley.Tick, restart bool) []parley.Effect {
	return h.at(now, func(m parley.Machine, s *parley.Step) {
		s.Restart = restart
		m.Start(s)
		s.Restart = false
	})
}

func (h *hand) receive(now parley.Tick, from parley.ID, msg parley.Msg) []parley.Effect {
	return h.at(now, func(m parley.Machine, s *parley.Step) { m.Receive(s, from, msg) })
}

// expire expires the timer that was set last, and returns when.
func (h *hand) expire() (parley.Tick, []parley.Effect) {
	h.Helper()
	for _, e := range h.step.Effects {
		if e.Op == parley.OpSetTimer {
			now := h.step.Now + e.After
			return now, h.at(now, func(m parley.Machine, s *parley.Step) { m.Timeout(s, e.Timer) })
		}
	}
	h.Fatal("no timer runs")
	return 0, nil
}

// show returns what the machine's logical clock shows at the given time, and whether it counts.
func (h *hand) show(now parley.Tick) (parley.Tick, bool) { return convergence.Now(h.machine, now) }

// Choose and the next three methods make hand the Host of a step.
func (h *hand) Choose(int) int                        { return 0 }
func (h *hand) Sign(parley.ID, []byte) []byte         { return nil }
func (h *hand) Verify(parley.ID, []byte, []byte) bool { return false }
func (h *hand) Refused(_, _ parley.ID, why string)    { h.refused = append(h.refused, why) }

func ask(t1 parley.Tick) parley.Msg {
	return parley.Msg{Kind: convergence.Read, Seq: uint64(t1)}
}

func tell(t1, t2 parley.Tick) parley.Msg {
	return parley.Msg{Kind: convergence.Time, Seq: uint64(t1), Value: uint64(t2)}
}

// delivered returns the deliveries of a kind.
func delivered(effects []parley.Effect, kind parley.Kind) (out []parley.Msg) {
	for _, e := range effects {
		if e.Op == parley.OpDeliver && e.Msg.Kind == kind {
			out = append(out, e.Msg)
		}
	}
	return out
}
