package vector_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/broadcast/vector"
	"parley/internal/viewtest"
	"parley/membership/group"
	"parley/sim"
)

// safe names the properties that hold in every run.
var safe = []string{group.ViewAgreement, group.ViewOrder, group.ViewSynchrony, problem.Integrity}

func storms(t *testing.T, c vector.Config, seeds int) {
	t.Helper()
	var also func(h *parley.History) error
	if c.Durable {
		also = samePlaces
	}
	viewtest.Storms(t, vector.New(c), c.Config, seeds, safe, also)
}

// Under any combination of faults the members that continue from one view to the next have delivered the
// same; and afterwards there is progress if a majority is left.
func TestStorm(t *testing.T) {
	for _, level := range levels {
		for _, n := range []int{3, 4, 5} {
			storms(t, vector.Config{Config: group.Config{N: n, Return: true}, Level: level}, 40)
		}
	}
}

// Excluded processes do not rejoin.
func TestStormWithoutReturn(t *testing.T) {
	for _, level := range levels {
		storms(t, vector.Config{Config: group.Config{N: 4}, Level: level, Window: 2}, 40)
	}
}

// Delayed acknowledgements, and a small window.
func TestStormWithHold(t *testing.T) {
	for _, level := range levels {
		storms(t, vector.Config{Config: group.Config{N: 4, Return: true}, Level: level, Window: 2, Hold: 1500}, 40)
	}
}

// With a log a process resumes from where it crashed, and delivers again, in the same places, what it may
// have delivered before.
func TestStormDurable(t *testing.T) {
	for _, level := range levels {
		for _, compact := range []int{1, 8, 0} {
			c := vector.Config{Config: group.Config{N: 3, Durable: true, Return: true, Compact: compact}, Level: level}
			storms(t, c, 40)
		}
	}
}

// samePlaces demands that a process delivers only one message at each of its positions, unless it has joined
// in between.
func samePlaces(h *parley.History) error {
	at := make([]map[uint64]string, h.N)
	told := h.Indications
	for _, d := range h.Deliveries {
		for ; len(told) > 0 && told[0].Order < d.Order; told = told[1:] {
			if told[0].Msg.Kind == group.SnapshotInstalled {
				at[told[0].At] = nil
			}
		}
		if at[d.At] == nil {
			at[d.At] = make(map[uint64]string)
		}
		what := fmt.Sprintf("%d:%s", d.From, d.Msg.Body)
		if before, again := at[d.At][d.Msg.Seq]; again && before != what {
			return fmt.Errorf("%s delivers %s at position %d, where it delivered %s", h.Name(d.At), what, d.Msg.Seq, before)
		}
		at[d.At][d.Msg.Seq] = what
	}
	return nil
}

// Messages of all levels in one group: each follows what its level demands, and one of level Reliable waits
// for nothing.
func TestMixedLevels(t *testing.T) {
	overtook := 0
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		opt := sim.Options{
			Protocol: vector.New(vector.Config{Config: group.Config{N: 4}}), Seed: seed, FIFO: true, Until: 60_000,
		}
		level := make(map[string]vector.Level)
		for k := range 12 {
			m := problem.Request(fmt.Appendf(nil, "m%d", k))
			m.Value = uint64(1 + r.IntN(4))
			level[string(m.Body)] = vector.Level(m.Value)
			opt.Requests = append(opt.Requests, sim.Request{
				At: parley.ID(r.IntN(4)), When: parley.Tick(r.IntN(6000)), Msg: m,
			})
		}
		s := sim.Run(opt)
		past := pasts(&s.History, level)
		done := make([][]string, 4)
		for _, d := range s.History.Deliveries {
			what := string(d.Msg.Body)
			for _, before := range past[what] {
				if slices.Contains(done[d.At], before) {
					continue
				}
				if level[what] >= vector.FIFO {
					t.Fatalf("seed %d: %d delivers %s (%s) before %s (%s)", seed, d.At, what, level[what], before, level[before])
				}
				overtook++
			}
			done[d.At] = append(done[d.At], what)
		}
		for id, all := range done {
			if len(all) != len(opt.Requests) {
				t.Fatalf("seed %d: %d delivers %v", seed, id, all)
			}
		}
	}
	if overtook == 0 {
		t.Error("no message overtook another one")
	}
}

// pasts returns what must be delivered before each message by its level: for FIFO what its sender broadcast
// before, and for Causal also what it had delivered. For the other levels it is the same as for FIFO, and may
// be overtaken.
func pasts(h *parley.History, level map[string]vector.Level) map[string][]string {
	past, sofar, got := make(map[string][]string), make([][]string, h.N), make([][]string, h.N)
	deliveries := h.Deliveries
	for _, q := range h.Requests {
		for ; len(deliveries) > 0 && deliveries[0].Order < q.Order; deliveries = deliveries[1:] {
			got[deliveries[0].At] = append(got[deliveries[0].At], string(deliveries[0].Msg.Body))
		}
		what := string(q.Msg.Body)
		past[what] = slices.Clone(sofar[q.At])
		if level[what] == vector.Causal {
			past[what] = append(past[what], got[q.At]...)
		}
		sofar[q.At] = append(sofar[q.At], what)
	}
	return past
}

// All remaining members deliver what a member delivered at level Uniform, although its sender and that member
// are gone; at level Reliable there are runs in which they do not.
func TestUniformOrNot(t *testing.T) {
	for _, level := range []vector.Level{vector.Reliable, vector.Uniform} {
		lost := 0
		for seed := range uint64(400) {
			r := rand.New(rand.NewPCG(seed, 3))
			opt := sim.Options{
				Protocol: vector.New(vector.Config{Config: group.Config{N: 5}, Level: level}),
				Seed:     seed, FIFO: true, Until: 60_000,
				Requests: []sim.Request{{At: 0, When: 2000, Msg: problem.Request([]byte("m"))}},
				Crashes: []sim.Crash{
					{At: 0, When: 2000, Effects: 1 + r.IntN(3)}, {At: 1, When: 2100 + parley.Tick(r.IntN(1200)), Effects: r.IntN(6)},
				},
			}
			s := sim.Run(opt)
			at := 0
			for _, d := range s.History.Deliveries {
				if s.History.Correct(d.At) {
					at++
				}
			}
			if len(s.History.Deliveries) > 0 && at != 3 {
				lost++
			}
		}
		if (level == vector.Uniform) != (lost == 0) {
			t.Errorf("%s: in %d runs what a member delivered was not delivered by all who stay", level, lost)
		}
	}
}

func TestDeliveredSurvivesRestartsOfAll(t *testing.T) {
	for _, level := range levels {
		c := vector.Config{Config: group.Config{N: 3, Durable: true, Return: true}, Level: level}
		viewtest.DeliveredSurvivesRestartsOfAll(t, vector.New(c))
	}
}
