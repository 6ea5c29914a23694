package sim_test

import (
	"math"
	"slices"
	"testing"

	"parley"
	"parley/faulty"
	"parley/sim"
)

// An event due at the end of time or later never happens: a run with nothing else due is over. No late event
// comes early because of an overflow.
func TestNever(t *testing.T) {
	const never = parley.Tick(math.MaxInt64)
	for name, after := range map[string]parley.Tick{"at the end": never, "almost": never - 400} {
		for _, clocks := range [][]sim.Clock{
			nil, {{At: 0, Offset: -700}}, {{At: 0, Offset: -700, Drift: -10}}, {{At: 0, Offset: 700}},
		} {
			fired := 0
			p := scripted(2, nil, func(s *parley.Step, event string) {
				switch event {
				case "request 1":
					s.SetTimer(1, after)
				case "timeout 1":
					if fired++; fired < 100 {
						s.SetTimer(1, after)
					}
					s.Send(1, say(1))
				}
			})
			s := sim.Run(sim.Options{
				Protocol: p, Clocks: clocks, Requests: []sim.Request{{When: 1000, Msg: say(1)}}, Steps: 1 << 16,
			})
			if fired > 0 || s.Now() != 1000 || !s.History.Over {
				t.Errorf("%s, clocks %v: fired %d times, now it is %d", name, clocks, fired, s.Now())
			}
		}
	}
	// Everything with a duration, begun almost at the end of time.
	var out []string
	p := scripted(3, &out, func(s *parley.Step, event string) {
		if event == "request 1" {
			s.SendAll(say(2))
		}
	})
	for i, opt := range []sim.Options{
		{}, {Loss: 1e-9}, {FIFO: true}, {Heal: never - 5},
		{Crashes: []sim.Crash{{At: 1, When: never - 10, Back: 20}}, Detect: 100},
		{Crashes: []sim.Crash{{At: 1, When: never - 10, Effects: 1, Back: 20}}},
		{Pauses: []sim.Pause{{At: 1, From: never - 10, For: 10}}},
	} {
		out = nil
		opt.Protocol, opt.Delay, opt.Steps = p, sim.Delay{Least: 20, Most: 30}, 1<<16
		opt.Requests = []sim.Request{{At: 0, When: never - 7, Msg: say(1)}}
		s := sim.Run(opt)
		if last := out[len(out)-1]; len(out) != 4 || last != "0@9223372036854775800 request 1" || !s.History.Over {
			t.Errorf("run %d: %q, and now it is %d", i, out, s.Now())
		}
	}
}

// A process that restarted, and crashed for good later, counts as restarted: its loss of the disk is no part
// of its crash. If the caller declares it faulty from the beginning, it is.
func TestAssumptionsOfOneThatCameBack(t *testing.T) {
	run := func(second ...sim.Crash) *sim.Sim {
		first := sim.Crash{At: 1, When: 100, Back: 10, LostDisk: true}
		return sim.Run(sim.Options{
			Protocol: flooding(5, 20), Crashes: append([]sim.Crash{first}, second...),
			Pauses: []sim.Pause{{At: 1, From: 200, For: 10}}, Clocks: []sim.Clock{{At: 1, Offset: 9}},
		})
	}
	s := run(sim.Crash{At: 1, When: 500})
	want := parley.ProcessFaults{Restarted: true, LostDisk: true, Paused: true}
	if a := s.RunConditions(); a.Faulty != 1 || a.Processes != want {
		t.Errorf("%+v", a)
	}
	s = run()
	if a := s.RunConditions(); a.Faulty != 0 || a.Processes != want {
		t.Errorf("%+v", a)
	}
	s.History.Faulty.Add(1)
	if a := s.RunConditions(); a.Faulty != 1 || a.Processes != (parley.ProcessFaults{}) {
		t.Errorf("%+v", a)
	}
}

// A crash that the run does not reach makes no process faulty. During the run it may still happen.
func TestCrashThatNeverComes(t *testing.T) {
	for _, c := range []sim.Crash{{At: 1, When: 5001}, {At: 1, Step: 1 << 20}, {At: 1, When: 4500, Effects: 1}} {
		var during []parley.Set
		opt := sim.Options{
			Protocol: scripted(3, nil, func(*parley.Step, string) {}), Until: 5000, Crashes: []sim.Crash{{At: 2, When: 7}, c},
			Requests: []sim.Request{{When: 10, Msg: say(1)}},
			Faulty:   map[parley.ID]faulty.Behavior{0: faulty.Silent},
			Between:  func(s *sim.Sim) { during = append(during, s.History.Faulty) },
		}
		s := sim.Run(opt)
		if s.History.Faulty != parley.SetOf(0, 2) || s.RunConditions().Faulty != 2 || !s.History.Over {
			t.Errorf("%+v: faulty %v", c, slices.Collect(s.History.Faulty.All()))
		}
		if len(during) == 0 || during[0] != parley.SetOf(0, 1, 2) {
			t.Errorf("%+v: while it runs %v", c, during)
		}
	}
}
