package sim_test

import (
	"bytes"
	"slices"
	"testing"

	"parley"
	"parley/faulty"
	"parley/sim"
	"parley/trace"
)

// A trace yields the history and the conditions of the run that wrote it.
func TestTraceGivesHistoryAndAssumptionsOfRun(t *testing.T) {
	for seed := range uint64(20) {
		log := &trace.Log{Keep: true}
		requests := []sim.Request{{At: 1, When: 5, Msg: parley.Msg{Kind: parley.Propose, Value: 1}}}
		s := sim.Run(sim.Options{
			Protocol: newEcho(4, 3), Seed: seed, Log: log, Loss: 0.2, Twice: 0.1, Until: 50_000, Requests: requests,
			Faulty:  map[parley.ID]faulty.Behavior{3: faulty.Flip},
			Crashes: []sim.Crash{{At: 2, When: 500}, {At: 1, When: 300, Back: 900, LostDisk: seed%2 == 1}},
		})
		h := trace.Header{N: 4, Facts: s.Facts()}
		for id := range s.History.Faulty.All() {
			h.Faulty = append(h.Faulty, int(id))
		}
		made := log.History(h)
		if made.N != 4 || made.Over != s.History.Over || made.Faulty != s.History.Faulty {
			t.Errorf("seed %d: got %d processes, over %t, faulty %v, want %d, %t, %v",
				seed, made.N, made.Over, made.Faulty, s.History.N, s.History.Over, s.History.Faulty)
		}
		same := func(what string, got, want []parley.ExternalEvent) {
			if !slices.EqualFunc(got, want, alike) || !slices.IsSortedFunc(got, inOrder) {
				t.Errorf("seed %d: got %s\n%+v, want\n%+v", seed, what, got, want)
			}
		}
		same("requests", made.Requests, s.History.Requests)
		same("deliveries", made.Deliveries, s.History.Deliveries)
		same("indications", made.Indications, s.History.Indications)
		same("restarts", made.Restarts, s.History.Restarts)
		if len(made.Restarts) == 0 {
			t.Errorf("seed %d: got no restart, want one", seed)
		}
		if got, want := h.Facts.RunConditions(newEcho(4, 3), made), s.RunConditions(); got != want {
			t.Errorf("seed %d: got %+v, want %+v", seed, got, want)
		}
	}
}

func inOrder(a, b parley.ExternalEvent) int { return int(a.Order) - int(b.Order) }

// alike compares two external events that different hosts have numbered.
func alike(a, b parley.ExternalEvent) bool {
	return a.At == b.At && a.From == b.From && a.When == b.When && a.Path == b.Path && a.Msg.Kind == b.Msg.Kind &&
		a.Msg.Seq == b.Msg.Seq && a.Msg.Value == b.Msg.Value && bytes.Equal(a.Msg.Body, b.Msg.Body)
}
