package sim_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"parley"
	"parley/faulty"
	"parley/sim"
	"parley/trace"
)

// sequentially runs f on one processor and returns the previous GOMAXPROCS.
func sequentially(f func()) int {
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	f()
	return before
}

// A suspicion comes at its time to a process that is up, from itself. It counts as false if the suspected
// process is up and correct.
func TestSuspicions(t *testing.T) {
	var out []string
	p := parley.Protocol{N: 4, New: func(parley.ID) parley.Machine { return hearer{out: &out} }}
	log := &trace.Log{Keep: true}
	s := sim.Run(sim.Options{
		Protocol: p, Log: log, Crashes: []sim.Crash{{At: 1, When: 50}},
		Faulty: map[parley.ID]faulty.Behavior{3: faulty.Silent},
		Suspicions: []sim.Suspicion{
			{At: 0, Of: 1, When: 40}, {At: 0, Of: 1, When: 60}, {At: 1, Of: 0, When: 70}, {At: 2, Of: 0, When: 0},
			{At: 2, Of: 3, When: 80},
		},
	})
	want(t, out, "2@0 suspects 0, says 2", "0@40 suspects 1, says 0", "0@60 suspects 1, says 0",
		"2@80 suspects 3, says 2")
	// Each comes once, and the machine indicates it again.
	if s.Stats.Suspicions != 8 || s.Stats.FalseSuspicions != 4 {
		t.Errorf("%+v", s.Stats)
	}
	var told []string
	for _, e := range log.Events {
		if e.Op == trace.Suspect {
			told = append(told, fmt.Sprintf("%d@%d %d", e.At, e.Time, e.Msg.Origin))
		}
	}
	want(t, told, "2@0 0", "0@40 1", "0@60 1", "2@80 3")
	if !s.RunConditions().Processes.Suspected {
		t.Error("no suspicion among the assumptions")
	}
}

// An accurate detector notifies every process that is up of a crash, after all messages of the crashed process
// have arrived, and none if the process has restarted by then.
func TestDetect(t *testing.T) {
	told := 0
	for seed := range uint64(50) {
		log := &trace.Log{Keep: true}
		opt := sim.Options{
			Protocol: flooding(4, 60), Seed: seed, Log: log, Detect: 100, Twice: 0.1, FIFO: seed%2 == 1, Until: 15_000,
			Crashes: []sim.Crash{{At: 0, When: 2000, Effects: 2}, {At: 1, When: 1000, Back: 99}, {At: 2, When: 1950, Back: 200},
				{At: 3, When: 3000, Back: 2000}},
			Links:  []sim.Link{{From: parley.SetOf(0), To: parley.SetOf(3), Delay: sim.Delay{Least: 1, Most: 9000}}},
			Pauses: []sim.Pause{{At: 1, From: 2050, For: 500}},
		}
		s := sim.Run(opt)
		var down parley.Set
		pairs := make(map[[2]parley.ID]int)
		for _, e := range log.Events {
			switch e.Op {
			case trace.Crash:
				down.Add(e.At)
			case trace.Restart:
				down.Remove(e.At)
			case trace.Suspect:
				if !down.Has(e.Msg.Origin) || e.At == e.Msg.Origin {
					t.Fatalf("seed %d: %+v", seed, e)
				}
				pairs[[2]parley.ID{e.At, e.Msg.Origin}]++
				told++
			case trace.Receive:
				if down.Has(e.Peer) && pairs[[2]parley.ID{e.At, e.Peer}] > 0 {
					t.Fatalf("seed %d: %d was told that %d has crashed, and then %+v comes", seed, e.At, e.Peer, e)
				}
			}
		}
		// Process 1 is notified after its pause, 2 at its restart or earlier, 3 before its crash or after its
		// restart.
		if pairs[[2]parley.ID{1, 0}] != 1 || pairs[[2]parley.ID{2, 0}] == 0 || pairs[[2]parley.ID{3, 0}] == 0 ||
			pairs[[2]parley.ID{1, 3}] == 0 || pairs[[2]parley.ID{0, 1}]+pairs[[2]parley.ID{2, 1}] > 0 {
			t.Fatalf("seed %d: %v", seed, pairs)
		}
		if s.Stats.FalseSuspicions > 0 || s.RunConditions().Processes.Suspected {
			t.Fatalf("seed %d: %+v", seed, s.Stats)
		}
	}
	if told < 50*5 {
		t.Error(told)
	}
}

// hearer records suspicions, and indicates them.
type hearer struct {
	parley.Base
	out *[]string
}

func (h hearer) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	*h.out = append(*h.out, fmt.Sprintf("%d@%d suspects %d, says %d", s.Self, s.Now, m.Origin, from))
	s.Indicate(m)
}
func (hearer) State(*parley.Vars) {}

// Machines see only their own clock, and their timers run on it. The network and the history use true time.
// Durable times are relative to the own clock.
func TestClocks(t *testing.T) {
	var out []string
	p := scripted(4, &out, func(s *parley.Step, event string) {
		switch event {
		case "start":
			s.SetTimer(1, 1000)
		case "timeout 1":
			s.Deliver(s.Self, say(1))
			s.SetTimer(2, 0)
		}
	})
	s := sim.Run(sim.Options{Protocol: p, Clocks: []sim.Clock{
		{At: 1, Offset: 500}, {At: 2, Drift: 100_000}, {At: 3, Offset: -700, Drift: -200_000},
	}})
	want(t, out, "0@0 start", "1@500 start", "2@0 start", "3@-700 start",
		"2@1001 timeout 1", "2@1001 timeout 2", "0@1000 timeout 1", "1@1500 timeout 1", "0@1000 timeout 2",
		"1@1500 timeout 2", "3@300 timeout 1", "3@300 timeout 2")
	var when []string
	for _, d := range s.History.Deliveries {
		when = append(when, fmt.Sprintf("%d@%d", d.At, d.When))
	}
	want(t, when, "2@910", "0@1000", "1@1000", "3@1250")
	if s.Clock(1) != 1750 || s.Clock(3) != 300 || s.Now() != 1250 {
		t.Error(s.Clock(1), s.Clock(3), s.Now())
	}
}

// Events during a pause come when it ends, in their order and before all other events of that time.
// Overlapping pauses are one.
func TestPauses(t *testing.T) {
	do := func(s *parley.Step, event string) {
		switch {
		case event == "start" && s.Self == 0:
			s.SetTimer(1, 150)
			s.SetTimer(2, 160)
			s.SetTimer(3, 300)
			s.SetTimer(4, 320)
		case event == "timeout 1":
			s.StopTimer(2)
		case event == "start":
			s.SetTimer(9, 154)
			s.SetTimer(9+parley.Timer(s.Self), 299)
		case strings.HasPrefix(event, "timeout") && s.Self > 0:
			s.Send(0, say(uint64(s.Self)))
		}
	}
	run := func(pauses []sim.Pause, crashes ...sim.Crash) ([]string, *sim.Sim) {
		var out []string
		s := sim.Run(sim.Options{
			Protocol: scripted(2, &out, do), Delay: unit, Pauses: pauses, Crashes: crashes,
			Requests:   []sim.Request{{At: 0, When: 170, Msg: say(7)}, {At: 0, When: 300, Msg: say(8)}},
			Suspicions: []sim.Suspicion{{At: 0, Of: 1, When: 180}},
		})
		var own []string
		for _, line := range out {
			if strings.HasPrefix(line, "0@") {
				own = append(own, line)
			}
		}
		return own, s
	}
	late := []string{"0@0 start", "0@300 timeout 1", "0@300 receive 1 from 1", "0@300 request 7",
		"0@300 receive 0 from 0", "0@300 request 8", "0@300 timeout 3", "0@300 receive 1 from 1", "0@320 timeout 4"}
	out, s := run([]sim.Pause{{At: 0, From: 100, For: 200}})
	want(t, out, late...)
	if s.Stats.Pauses != 1 || !s.RunConditions().Processes.Paused {
		t.Errorf("%+v", s.Stats)
	}
	out, _ = run([]sim.Pause{{At: 0, From: 100, For: 100}, {At: 0, From: 110, For: 190}, {At: 0, From: 150, For: 10}})
	want(t, out, late...)
	// A crash in the pause ends it, and drops what waited.
	out, s = run([]sim.Pause{{At: 0, From: 100, For: 200}}, sim.Crash{At: 0, When: 165, Back: 3})
	want(t, out, "0@0 start", "0@168 restart", "0@170 request 7", "0@180 receive 0 from 0", "0@300 request 8",
		"0@300 receive 1 from 1")
	if s.Stats.Restarts != 1 {
		t.Errorf("%+v", s.Stats)
	}
	// A process that is down is not paused, and a restarted one is up.
	out, s = run([]sim.Pause{{At: 0, From: 100, For: 200}}, sim.Crash{At: 0, When: 90, Back: 60})
	want(t, out, "0@0 start", "0@150 restart", "0@155 receive 1 from 1", "0@170 request 7", "0@180 receive 0 from 0",
		"0@300 request 8", "0@300 receive 1 from 1")
	if s.Stats.Pauses != 0 {
		t.Errorf("%+v", s.Stats)
	}
}

// Two pauses that end at the same time end one after the other, and each process gets all events of its own
// pause.
func TestPausesTogether(t *testing.T) {
	var out []string
	sim.Run(sim.Options{
		Protocol: scripted(2, &out, func(*parley.Step, string) {}),
		Pauses:   []sim.Pause{{At: 1, From: 100, For: 200}, {At: 0, From: 150, For: 150}},
		Requests: []sim.Request{
			{At: 0, When: 200, Msg: say(1)}, {At: 1, When: 200, Msg: say(2)}, {At: 1, When: 210, Msg: say(3)},
			{At: 0, When: 220, Msg: say(4)}, {At: 0, When: 300, Msg: say(5)},
		},
	})
	want(t, out, "0@0 start", "1@0 start", "1@300 request 2", "1@300 request 3", "0@300 request 1",
		"0@300 request 4", "0@300 request 5")
}

// A crash by time with no effects comes at that time. Otherwise it comes in the first step from then on that
// has effects, or at the end of Patience.
func TestCrashWhen(t *testing.T) {
	do := func(s *parley.Step, event string) {
		switch {
		case event == "start" && s.Self == 0:
			s.SetTimer(1, 90)
			s.SetTimer(2, 110)
			s.SetTimer(3, 200)
		case event == "timeout 3":
			s.Append([]byte("a"))
			s.SendAll(say(3))
		case event == "timeout 1":
			s.SendAll(say(1))
		}
	}
	for _, c := range []struct {
		name    string
		crashes []sim.Crash
		want    []string
	}{
		{"at the time", []sim.Crash{{At: 0, When: 100, Back: 300}},
			[]string{"0@90 timeout 1", "1@91 receive 1 from 0", "2@91 receive 1 from 0", "0@400 restart"}},
		{"from the beginning", []sim.Crash{{At: 0}}, nil},
		{"from the beginning, for a time", []sim.Crash{{At: 0, Back: 300}}, []string{"0@300 restart"}},
		{"in the first step that does anything", []sim.Crash{{At: 0, Effects: 1, Back: 300}}, []string{"0@300 restart"}},
		{"in a step", []sim.Crash{{At: 0, When: 100, Effects: 2, Back: 300}},
			[]string{"0@90 timeout 1", "1@91 receive 1 from 0", "2@91 receive 1 from 0", "0@110 timeout 2",
				"0@200 timeout 3", "1@201 receive 3 from 0", "0@500 restart a"}},
		{"in no step", []sim.Crash{{At: 0, When: 201, Effects: 2, Back: 300}},
			[]string{"0@90 timeout 1", "1@91 receive 1 from 0", "2@91 receive 1 from 0", "0@110 timeout 2",
				"0@200 timeout 3", "1@201 receive 3 from 0", "2@201 receive 3 from 0", "0@1501 restart a"}},
		{"twice", []sim.Crash{{At: 0, When: 80, Back: 10}, {At: 0, When: 95, Back: 10, LostDisk: true}},
			[]string{"0@90 restart", "0@105 restart"}},
		{"when it is down", []sim.Crash{{At: 0, When: 80, Back: 100}, {At: 0, When: 95, Back: 500}},
			[]string{"0@180 restart"}},
		{"for good when it is down", []sim.Crash{{At: 0, When: 80, Back: 100}, {At: 0, When: 95}}, nil},
		{"while another one waits", []sim.Crash{{At: 0, When: 95, Effects: 1, Back: 5}, {At: 0, When: 98, Effects: 1, Back: 50}},
			[]string{"0@90 timeout 1", "1@91 receive 1 from 0", "2@91 receive 1 from 0", "0@103 restart"}},
		{"in a step, twice", []sim.Crash{{At: 0, Step: 2, Effects: 1, Back: 1}, {At: 0, Step: 3, Back: 7}},
			[]string{"0@90 timeout 1", "1@91 receive 1 from 0", "0@91 restart", "0@98 restart"}},
	} {
		var out []string
		s := sim.Run(sim.Options{Protocol: scripted(3, &out, do), Delay: unit, Crashes: c.crashes})
		t.Log(c.name)
		want(t, out, append([]string{"0@0 start", "1@0 start", "2@0 start"}, c.want...)...)
		if gone := c.want == nil; gone != s.History.Faulty.Has(0) {
			t.Errorf("faulty: %v", s.History.Faulty)
		}
		if lost := c.name == "twice"; lost != (s.Stats.LostDisks == 1) || lost != s.RunConditions().Processes.LostDisk {
			t.Errorf("%+v", s.Stats)
		}
	}
}

// The conditions are what happened in the run, not what might have happened.
func TestAssumptions(t *testing.T) {
	const n = 5
	all := sim.Delay{Least: 1, Most: 1}
	half := parley.SetOf(3, 4)
	for name, c := range map[string]struct {
		opt  sim.Options
		want func(a *parley.RunConditions)
	}{
		"nothing":         {sim.Options{}, func(*parley.RunConditions) {}},
		"hardly any loss": {sim.Options{Loss: 1e-12, Twice: 1e-12}, func(*parley.RunConditions) {}},
		"loss":            {sim.Options{Loss: 0.5}, func(a *parley.RunConditions) { a.Network.Lost = true }},
		"doubling":        {sim.Options{Twice: 0.5}, func(a *parley.RunConditions) { a.Network.Doubled = true }},
		"no order":        {sim.Options{Delay: sim.Delay{Least: 1, Most: 900}}, func(a *parley.RunConditions) { a.Network.Reordered = true }},
		"order":           {sim.Options{Delay: sim.Delay{Least: 1, Most: 900}, FIFO: true}, func(*parley.RunConditions) {}},
		"slower than said": {sim.Options{
			Promised: parley.ModelAssumptions{Delay: 1}, Delay: sim.Delay{Least: 2, Most: 2},
		}, func(a *parley.RunConditions) { a.Network.Late = true }},
		"as slow as said": {sim.Options{Promised: parley.ModelAssumptions{Delay: 50}, Links: []sim.Link{{Delay: sim.Delay{Least: 50, Most: 50}}}},
			func(*parley.RunConditions) {}},
		"a slow link": {sim.Options{Links: []sim.Link{{From: half, Delay: sim.Delay{Least: 2, Most: 2}}}},
			func(a *parley.RunConditions) { a.Network.Late = true }},
		"a partition": {sim.Options{Links: []sim.Link{{From: half, To: parley.Everyone(n).Minus(half), Since: 100, Until: 200, Loss: 1}}},
			func(a *parley.RunConditions) { a.Network.Cut = true }},
		"a partition for good": {sim.Options{Links: []sim.Link{{From: half, To: parley.Everyone(n).Minus(half), Loss: 1}}},
			func(a *parley.RunConditions) { a.Network.Cut, a.Network.Disconnected = true, true }},
		"three parts": {sim.Options{Links: []sim.Link{{Loss: 1}, {From: half, To: half}, {From: parley.SetOf(0, 1), To: parley.SetOf(0, 1)}}},
			func(a *parley.RunConditions) {
				a.Network.Cut, a.Network.Disconnected, a.Processes.Minority = true, true, true
			}},
		"a partition that healed": {sim.Options{Heal: 250, Links: []sim.Link{{From: half, To: parley.Everyone(n).Minus(half), Loss: 1}}},
			func(a *parley.RunConditions) { a.Network.Cut = true }},
		"a crash": {sim.Options{Crashes: []sim.Crash{{At: 1, When: 100}}},
			func(a *parley.RunConditions) { a.Faulty = 1 }},
		"most crash": {sim.Options{Crashes: []sim.Crash{{At: 1, When: 100}, {At: 2, When: 100}, {At: 3, When: 100}}},
			func(a *parley.RunConditions) { a.Faulty, a.Processes.Minority = 3, true }},
		"the source crashes": {sim.Options{Crashes: []sim.Crash{{At: 0, When: 100}}},
			func(a *parley.RunConditions) { a.Faulty, a.SourceFaulty = 1, true }},
		"a restart": {sim.Options{Crashes: []sim.Crash{{At: 1, When: 100, Back: 10}}},
			func(a *parley.RunConditions) { a.Away, a.Processes.Restarted = 1, true }},
		"a pause":         {sim.Options{Pauses: []sim.Pause{{At: 1, From: 5, For: 1}}}, func(a *parley.RunConditions) { a.Processes.Paused = true }},
		"a wrong clock":   {sim.Options{Clocks: []sim.Clock{{At: 1, Offset: -5}}}, func(a *parley.RunConditions) { a.Processes.Paused = true }},
		"one that drifts": {sim.Options{Clocks: []sim.Clock{{At: 1, Drift: -5}}}, func(a *parley.RunConditions) { a.Processes.Paused = true }},
		"a clock as was said": {sim.Options{
			Promised: parley.ModelAssumptions{Offset: 5, Drift: 9}, Clocks: []sim.Clock{{At: 1, Offset: -5, Drift: 9}},
		}, func(*parley.RunConditions) {}},
		"a liar": {sim.Options{Faulty: map[parley.ID]faulty.Behavior{1: faulty.Flip, 2: faulty.Silent}},
			func(a *parley.RunConditions) { a.Faulty, a.Worst = 2, faulty.Flip.Model }},
	} {
		opt := c.opt
		opt.Protocol = flooding(n, 4)
		opt.Protocol.M, opt.Protocol.Proposers = 2, parley.SetOf(0)
		if opt.Delay == (sim.Delay{}) {
			opt.Delay = all
		}
		want := parley.RunConditions{N: n, M: 2}
		c.want(&want)
		if have := sim.Run(opt).RunConditions(); have != want {
			t.Errorf("%s:\nhave %+v\nwant %+v", name, have, want)
		}
	}
	// Two parts without an edge between them are not joined. A process that is the only way between two parts
	// separates them when it crashes.
	line := []parley.Set{parley.SetOf(1), parley.SetOf(0, 2), parley.SetOf(1, 3), parley.SetOf(2, 4), parley.SetOf(3)}
	opt := sim.Options{Protocol: flooding(n, 4), Delay: all, Graph: line}
	if a := sim.Run(opt).RunConditions(); !a.Network.Cut {
		t.Errorf("nobody relays, and links that are not there cut nobody off: %+v", a)
	}
	opt.Protocol.Relays = true
	if a := sim.Run(opt).RunConditions(); a.Network != (parley.NetworkFaults{}) || a.Processes.Minority {
		t.Errorf("%+v", a)
	}
	opt.Crashes = []sim.Crash{{At: 2, When: 5}}
	if a := sim.Run(opt).RunConditions(); !a.Network.Disconnected || !a.Processes.Minority {
		t.Errorf("%+v", a)
	}
	opt.Graph[3] = parley.SetOf(1, 4) // from 3 to 1, but not from 1 to 3
	if a := sim.Run(opt).RunConditions(); !a.Network.Disconnected || !a.Processes.Minority {
		t.Errorf("%+v", a)
	}
	opt.Graph[1].Add(3)
	if a := sim.Run(opt).RunConditions(); a.Network.Disconnected || a.Processes.Minority {
		t.Errorf("%+v", a)
	}
}
