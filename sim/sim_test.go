package sim_test

import (
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"parley"
	"parley/faulty"
	"parley/parleytest"
	"parley/sim"
	"parley/trace"
)

// script is a machine that calls do in each clause, and records its events.
type script struct {
	do  func(s *parley.Step, event string)
	out *[]string
}

func (p script) note(s *parley.Step, event string) {
	if p.out != nil {
		*p.out = append(*p.out, fmt.Sprintf("%d@%d %s", s.Self, s.Now, event))
	}
	if p.do != nil {
		p.do(s, event)
	}
}

func (p script) Start(s *parley.Step) {
	event := "start"
	if s.Restart {
		event = "restart"
	}
	for _, r := range s.Log {
		event += " " + string(r.Body)
	}
	p.note(s, event)
}
func (p script) Request(s *parley.Step, m parley.Msg) { p.note(s, fmt.Sprintf("request %d", m.Value)) }
func (p script) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	p.note(s, fmt.Sprintf("receive %d from %d", m.Value, from))
}
func (p script) Timeout(s *parley.Step, t parley.Timer) { p.note(s, fmt.Sprintf("timeout %d", t)) }
func (p script) State(*parley.Vars)                     {}

func scripted(n int, out *[]string, do func(s *parley.Step, event string)) parley.Protocol {
	return parley.Protocol{Name: "scripted", N: n, New: func(parley.ID) parley.Machine { return script{do, out} }}
}

func say(v uint64) parley.Msg { return parley.Msg{Kind: 1, Value: v} }

func want(t *testing.T, have []string, want ...string) {
	t.Helper()
	if !slices.Equal(have, want) {
		t.Errorf("\nhave %s\nwant %s", strings.Join(have, "; "), strings.Join(want, "; "))
	}
}

var unit = sim.Delay{Least: 1, Most: 1}

// Start comes first, then the requests of time 0, then everything due, in order of time and within a time in
// the order of insertion.
func TestOrder(t *testing.T) {
	var out []string
	p := scripted(2, &out, func(s *parley.Step, event string) {
		if event == "start" && s.Self == 0 {
			s.SetTimer(1, 0)
			s.SendAll(say(1))
			s.SetTimer(2, 1)
		}
	})
	s := sim.Run(sim.Options{Protocol: p, Delay: unit, Requests: []sim.Request{
		{At: 1, When: 1, Msg: say(8)}, {At: 0, Msg: say(7)}, {At: 1, When: 5000, Msg: say(9)},
	}})
	want(t, out, "0@0 start", "1@0 start", "0@0 request 7", "0@0 timeout 1", "1@1 request 8",
		"1@1 receive 1 from 0",
		"0@1 timeout 2", "1@5000 request 9")
	if s.Now() != 5000 || s.Stats.Steps != 8 || s.Stats.Sends != 1 || s.Stats.Deliveries != 1 ||
		len(s.History.Requests) != 3 || !s.History.Over {
		t.Errorf("%d %+v %+v", s.Now(), s.Stats, s.History)
	}
}

// Timers replace one another, can be stopped, and expire once.
func TestTimers(t *testing.T) {
	var out []string
	sim.Run(sim.Options{Protocol: scripted(1, &out, func(s *parley.Step, event string) {
		switch event {
		case "start":
			s.SetTimer(1, 10)
			s.SetTimer(2, 10)
			s.SetTimer(1, 30)
			s.SetTimer(3, 20)
			s.SetTimer(4, 10000) // beyond the ring
			s.SetTimer(5, 10000)
		case "timeout 2":
			s.StopTimer(3)
			s.StopTimer(3)
			s.StopTimer(5)
			s.SetTimer(2, 5)
		}
	}), Until: 11000, Steps: 7})
	want(t, out, "0@0 start", "0@10 timeout 2", "0@15 timeout 2", "0@20 timeout 2", "0@25 timeout 2",
		"0@30 timeout 1", "0@30 timeout 2")
}

// Until ends a run at a time. Steps ends a run that would not end, also one in which the time does not change,
// and in the middle of a message to all. A history is over if nothing more was due or the time was over, but
// not if the steps were used up with more to do.
func TestEnds(t *testing.T) {
	every := func(after parley.Tick) parley.Protocol {
		return scripted(1, nil, func(s *parley.Step, event string) { s.SetTimer(0, after) })
	}
	three := scripted(1, nil, func(s *parley.Step, event string) {
		switch event {
		case "start":
			s.SetTimer(0, 10)
			s.SetTimer(1, 30)
		case "timeout 0":
			s.SetTimer(0, 10)
			s.SetTimer(1, 10)
			s.StopTimer(0) // still in the schedule, without effect
		}
	})
	loud := scripted(10, nil, func(s *parley.Step, event string) {
		if event == "start" {
			s.SendAll(say(1))
		}
	})
	for name, c := range map[string]struct {
		opt   sim.Options
		steps uint64
		over  bool
	}{
		"until a time":          {sim.Options{Protocol: every(10), Until: 1000}, 101, true},
		"steps before the time": {sim.Options{Protocol: every(10), Until: 1000, Steps: 50}, 50, false},
		"steps":                 {sim.Options{Protocol: every(10), Steps: 50}, 50, false},
		"time stands still":     {sim.Options{Protocol: every(0), Steps: 50}, 50, false},
		"it stands very long":   {sim.Options{Protocol: every(0), Steps: 100_000}, 100_000, false},
		"nothing is due":        {sim.Options{Protocol: three}, 3, true},
		"just enough steps":     {sim.Options{Protocol: three, Steps: 3}, 3, true},
		"one too few":           {sim.Options{Protocol: three, Steps: 2}, 2, false},
		"not even all start":    {sim.Options{Protocol: loud, Steps: 4}, 4, false},
		"all of a message":      {sim.Options{Protocol: loud, Delay: unit}, 100, true},
		"some of a message":     {sim.Options{Protocol: loud, Delay: unit, Steps: 23}, 23, false},
		"no request": {sim.Options{Protocol: three, Steps: 1, Requests: []sim.Request{{Msg: say(1)}}},
			1, false},
		"no restart": {sim.Options{Protocol: three, Steps: 2, Crashes: []sim.Crash{{Step: 2, Back: 5}}}, 2, false},
		"restarted":  {sim.Options{Protocol: three, Crashes: []sim.Crash{{Step: 2, Back: 5}}}, 3, true},
	} {
		s := sim.Run(c.opt)
		if s.Stats.Steps != c.steps || s.History.Over != c.over || s.Stats.OutOfSteps == c.over {
			t.Errorf("%s: %d steps, over: %v, out of steps: %v", name, s.Stats.Steps, s.History.Over, s.Stats.OutOfSteps)
		}
		if c.opt.Until > 0 && c.over && s.Now() != c.opt.Until {
			t.Errorf("%s: it ends at %d", name, s.Now())
		}
	}
}

// flooding sends a message from every process to every other each 100 ticks.
func flooding(n, times int) parley.Protocol {
	return parley.Protocol{Name: "flooding", N: n, New: func(parley.ID) parley.Machine { return &floods{left: times} }}
}

type floods struct {
	parley.Base
	left, heard int
}

func (p *floods) Start(s *parley.Step) { p.Timeout(s, 0) }
func (p *floods) Timeout(s *parley.Step, _ parley.Timer) {
	if p.left--; p.left >= 0 {
		s.SendAll(parley.Msg{Kind: 1, Seq: uint64(s.Choose(1000))})
		s.SetTimer(0, 100)
	}
}
func (p *floods) Receive(s *parley.Step, from parley.ID, m parley.Msg) {
	if p.heard++; p.heard%7 == 0 && from != s.Self {
		s.Send(from, parley.Msg{Kind: 2, Value: uint64(s.Choose(9))})
	}
}
func (p *floods) State(v *parley.Vars) {
	parley.Num(v, "left", &p.left)
	parley.Num(v, "heard", &p.heard)
}

// Delays are within their bounds, including both ends, and links lose and duplicate as often as configured.
func TestLinks(t *testing.T) {
	log := &trace.Log{Keep: true}
	s := sim.Run(sim.Options{
		Protocol: flooding(5, 400), Delay: sim.Delay{Least: 3, Most: 9}, Loss: 0.25, Twice: 0.5, Log: log, Seed: 4,
	})
	sent := make(map[uint64]parley.Tick)
	delays := make(map[parley.Tick]int)
	received, lost := 0, 0
	for _, e := range log.Events {
		switch e.Op {
		case trace.Send:
			sent[e.ID] = e.Time
		case trace.Receive:
			at, known := sent[e.Cause]
			if !known {
				t.Fatal("a message out of nothing")
			}
			delays[e.Time-at]++
			received++
		case trace.Lose:
			lost++
			if _, known := sent[e.Cause]; !known {
				t.Fatal("lost out of nothing")
			}
		}
	}
	for d := parley.Tick(0); d < 20; d++ {
		share := float64(delays[d]) / float64(received)
		if in := d >= 3 && d <= 9; in && (share < 0.12 || share > 0.17) || !in && share > 0 {
			t.Errorf("%.3f of the messages take %d ticks", share, d)
		}
	}
	if uint64(lost) != s.Stats.Lost || uint64(received) != s.Stats.Deliveries {
		t.Error(lost, received, s.Stats)
	}
	if share := float64(lost) / float64(s.Stats.Sends); share < 0.23 || share > 0.27 {
		t.Errorf("%.3f were lost", share)
	}
	if copies := float64(received) / float64(s.Stats.Sends-s.Stats.Lost); copies < 1.47 || copies > 1.53 {
		t.Errorf("%.3f copies arrive", copies)
	}
}

// The coalition's messages take the least delay.
func TestRushing(t *testing.T) {
	log := &trace.Log{Keep: true}
	sim.Run(sim.Options{
		Protocol: flooding(5, 50), Delay: sim.Delay{Least: 3, Most: 9}, Log: log,
		Faulty: map[parley.ID]faulty.Behavior{1: faulty.Honest},
	})
	seen := 0
	for _, e := range log.Events {
		if e.Op == trace.Receive && e.Peer == 1 {
			if seen++; log.Events[e.Cause-1].Time+3 != e.Time {
				t.Fatalf("%+v was sent at %d", e, log.Events[e.Cause-1].Time)
			}
		}
	}
	if seen < 200 {
		t.Error(seen)
	}
}

// The same options give the same run, event by event, whatever GOMAXPROCS is. Another seed gives another run.
// A trace changes nothing.
func TestDeterminism(t *testing.T) {
	hashes := make(map[string]bool)
	for seed := range uint64(20) {
		opt := sim.Options{Protocol: flooding(6, 20), Seed: seed, Loss: 0.1, Twice: 0.1,
			Faulty: map[parley.ID]faulty.Behavior{5: faulty.SendOmission}}
		var runs []string
		var stats []sim.Stats
		for _, procs := range []int{1, 2} {
			before := runtime.GOMAXPROCS(procs)
			opt.Log = &trace.Log{}
			stats = append(stats, sim.Run(opt).Stats)
			runs = append(runs, opt.Log.Hash())
			runtime.GOMAXPROCS(before)
		}
		opt.Log = nil
		stats = append(stats, sim.Run(opt).Stats)
		if runs[0] != runs[1] || !reflect.DeepEqual(stats[0], stats[1]) || !reflect.DeepEqual(stats[0], stats[2]) {
			t.Fatalf("seed %d: two runs differ", seed)
		}
		hashes[runs[0]] = true
	}
	if len(hashes) != 20 {
		t.Error(len(hashes), "different runs of 20 seeds")
	}
}

// With fixed delays a message to all is internally one event. Nothing else differs from a run with a trace,
// where it is one for each receiver.
func TestFixedDelays(t *testing.T) {
	for seed := range uint64(20) {
		opt := sim.Options{Protocol: flooding(6, 20), Seed: seed, Delay: sim.Delay{Least: 5, Most: 5},
			Crashes: []sim.Crash{{At: 2, Step: 9, Effects: 3, Back: 150}}}
		quick := sim.Run(opt)
		opt.Log = &trace.Log{}
		slow := sim.Run(opt)
		if !reflect.DeepEqual(quick.Stats, slow.Stats) || quick.Stats.Crashes != 1 {
			t.Fatalf("%+v\n%+v", quick.Stats, slow.Stats)
		}
		for id := range parley.ID(6) {
			if !reflect.DeepEqual(parley.Show(quick.Machine(id), 0), parley.Show(slow.Machine(id), 0)) {
				t.Fatal("other states")
			}
		}
	}
}

// A crash comes in the given step, after the given number of its effects: none, the records, some of the
// sends. Earlier timers are void after it, messages that arrive while the process is down are lost, and the
// log is there unless the disk is lost.
func TestCrash(t *testing.T) {
	do := func(s *parley.Step, event string) {
		if s.Self != 0 {
			return
		}
		switch {
		case event == "start":
			s.SetTimer(1, 100)
			s.SetTimer(9, 10000)
		case event == "timeout 1":
			s.SendAll(say(1))
			s.Append([]byte("a"))
			s.Send(2, say(2))
			s.Append([]byte("b"))
		case strings.HasPrefix(event, "restart"):
			s.SetTimer(7, 1)
		}
	}
	for _, c := range []struct {
		effects  int
		lost     bool
		received []string // by 1, 2 and 3 before the restart
		restart  string
	}{
		{0, false, nil, "restart"},
		{1, false, nil, "restart a"},
		{2, false, nil, "restart a b"},
		{3, false, []string{"1@101 receive 1 from 0"}, "restart a b"},
		{4, false, []string{"1@101 receive 1 from 0", "2@101 receive 1 from 0"}, "restart a b"},
		{5, false, []string{"1@101 receive 1 from 0", "2@101 receive 1 from 0", "3@101 receive 1 from 0"},
			"restart a b"},
		{6, false, []string{"1@101 receive 1 from 0", "2@101 receive 1 from 0", "3@101 receive 1 from 0",
			"2@101 receive 2 from 0"}, "restart a b"},
		{99, true, []string{"1@101 receive 1 from 0", "2@101 receive 1 from 0", "3@101 receive 1 from 0",
			"2@101 receive 2 from 0"}, "restart"},
	} {
		var out []string
		s := sim.Run(sim.Options{
			Protocol: scripted(4, &out, do), Delay: unit,
			Crashes:  []sim.Crash{{At: 0, Step: 2, Effects: c.effects, Back: 50, LostDisk: c.lost}},
			Requests: []sim.Request{{At: 0, When: 120, Msg: say(5)}, {At: 0, When: 160, Msg: say(6)}},
		})
		if s.Stats.Crashes != 1 || s.History.Faulty != (parley.Set{}) || len(s.History.Requests) != 1 {
			t.Errorf("%+v %+v", s.Stats, s.History)
		}
		all := append([]string{"0@0 start", "1@0 start", "2@0 start", "3@0 start", "0@100 timeout 1"}, c.received...)
		all = append(all, "0@150 "+c.restart, "0@151 timeout 7", "0@160 request 6")
		want(t, out, all...)
	}
	// Without Back the process stays down, and counts as faulty.
	var out []string
	s := sim.Run(sim.Options{Protocol: scripted(3, &out, do), Delay: unit, Crashes: []sim.Crash{{At: 0, Step: 2}}})
	want(t, out, "0@0 start", "1@0 start", "2@0 start", "0@100 timeout 1")
	if s.History.Faulty != parley.SetOf(0) || s.Correct() != parley.SetOf(1, 2) {
		t.Error(s.History.Faulty, s.Correct())
	}
}

// A compacted state cannot be mistaken for a record, wherever in a composed machine the record belongs.
func TestRecordAnywhere(t *testing.T) {
	const deep = ^parley.Path(0)
	found := 0
	p := scripted(1, nil, func(s *parley.Step, event string) {
		switch event {
		case "start":
			s.Append([]byte("a"))
			s.Lower(0, 64, deep)
		case "restart a":
			if s.Log[0].Path == deep {
				found++
			}
		}
	})
	s := sim.Run(sim.Options{Protocol: p, Crashes: []sim.Crash{{At: 0, Step: 1, Effects: 9, Back: 5}}})
	if state, log := s.Durable(0); found != 1 || state != nil || len(log) != 1 {
		t.Errorf("found %d times: %x and %v", found, state, log)
	}
}

// The history has the requests, deliveries and indications, with process, time and path inside a machine.
// Another run in the same memory starts without them.
func TestHistory(t *testing.T) {
	p := scripted(2, nil, func(s *parley.Step, event string) {
		if event == "request 7" {
			s.Deliver(0, say(1))
			s.Indicate(parley.Msg{Kind: parley.Suspect, Origin: 0})
			s.Lower(0, 3, 5)
			s.Indicate(parley.Msg{Kind: parley.View, Seq: 2})
		}
	})
	s := sim.Run(sim.Options{Protocol: p, Requests: []sim.Request{{At: 1, When: 4, Msg: say(7)}}})
	order := uint64(0)
	happened := func(from parley.ID, path parley.Path, m parley.Msg) parley.ExternalEvent {
		order++
		return parley.ExternalEvent{At: 1, From: from, When: 4, Order: order, Path: path, Msg: m}
	}
	want := parley.History{
		N: 2, Over: true,
		Requests:   []parley.ExternalEvent{happened(1, 0, say(7))},
		Deliveries: []parley.ExternalEvent{happened(0, 5, say(1))},
		Indications: []parley.ExternalEvent{
			happened(1, 5, parley.Msg{Kind: parley.Suspect}), happened(1, 0, parley.Msg{Kind: parley.View, Seq: 2}),
		},
	}
	if !reflect.DeepEqual(s.History, want) {
		t.Errorf("\nhave %+v\nwant %+v", s.History, want)
	}
	s.Reset(sim.Options{Protocol: p})
	if s.Run(); len(s.History.Requests)+len(s.History.Deliveries)+len(s.History.Indications) > 0 {
		t.Errorf("%+v", s.History)
	}
}

// Compact replaces all records by the durable state, including those of its own step; later records follow it.
func TestCompact(t *testing.T) {
	p := parley.Protocol{N: 1, New: func(parley.ID) parley.Machine { return &tally{} }}
	var requests []sim.Request
	for v := range uint64(5) {
		requests = append(requests, sim.Request{When: parley.Tick(10 * (v + 1)), Msg: say(v)})
	}
	for step, c := range map[int]struct {
		sum  int
		kept int
	}{2: {0, 1}, 3: {1, 2}, 4: {3, 0}, 5: {6, 1}} { // the third compacts, before it appends
		s := sim.Run(sim.Options{Protocol: p, Requests: requests[:step-1],
			Crashes: []sim.Crash{{At: 0, Step: step, Effects: 9, Back: 5}}})
		state, kept := s.Durable(0)
		if m := s.Machine(0).(*tally); m.sum != c.sum || len(kept) != c.kept || (len(state) > 0) != (step >= 4) {
			t.Errorf("step %d: sum %d of %d records and %x", step, m.sum, len(kept), state)
		}
	}
}

// tally adds up its requests, durably.
type tally struct {
	parley.Base
	sum, asked int
}

func (p *tally) Start(s *parley.Step) {
	for _, r := range s.Log {
		p.sum += int(r.Body[0])
	}
}

func (p *tally) Request(s *parley.Step, m parley.Msg) {
	p.sum += int(m.Value)
	if p.asked++; p.asked == 3 {
		s.Compact() // requested before the record, and done after it
	}
	s.Append([]byte{byte(m.Value)})
}

func (p *tally) State(v *parley.Vars) { v.Durable(func() { parley.Num(v, "sum", &p.sum) }) }

// Invalid options and steps are errors of the program, and panic.
func TestPanics(t *testing.T) {
	asks := func(f func(s *parley.Step)) parley.Protocol {
		return scripted(2, nil, func(s *parley.Step, event string) {
			if event == "start" {
				f(s)
			}
		})
	}
	well := scripted(2, nil, nil)
	liar := asks(func(s *parley.Step) { s.SendAll(say(1)) })
	forging := faulty.Behavior{Tell: func(*parley.Step, *parley.Turn) []parley.Outgoing {
		return []parley.Outgoing{{Msg: parley.Msg{Kind: parley.Suspect}}}
	}}
	for name, opt := range map[string]sim.Options{
		"no processes":             {Protocol: parley.Protocol{}},
		"a request before time":    {Protocol: well, Requests: []sim.Request{{When: -1}}},
		"too many":                 {Protocol: parley.Protocol{N: parley.MaxProcesses + 1}},
		"no delay":                 {Protocol: well, Delay: sim.Delay{Least: 0, Most: 5}},
		"delays upside down":       {Protocol: well, Delay: sim.Delay{Least: 7, Most: 5}},
		"a broadcast into nothing": {Protocol: asks(func(s *parley.Step) { s.Broadcast(say(1)) })},
		"a request of nothing":     {Protocol: asks(func(s *parley.Step) { s.Request(parley.Msg{Kind: parley.Propose}) })},
		"a forged suspicion":       {Protocol: liar, Faulty: map[parley.ID]faulty.Behavior{0: forging}},
		"a crash at two times":     {Protocol: well, Crashes: []sim.Crash{{At: 0, Step: 1, When: 1}}},
		"a crash of nobody":        {Protocol: well, Crashes: []sim.Crash{{At: 2, When: 1}}},
		"a pause of no length":     {Protocol: well, Pauses: []sim.Pause{{At: 0, From: 1}}},
		"a pause without end":      {Protocol: well, Pauses: []sim.Pause{{At: 0, From: 1, For: 1<<63 - 1}}},
		"a clock that stands":      {Protocol: well, Clocks: []sim.Clock{{At: 0, Drift: -1_000_000}}},
		"the clock of nobody":      {Protocol: well, Clocks: []sim.Clock{{At: 2}}},
		"a suspicion of nobody":    {Protocol: well, Suspicions: []sim.Suspicion{{At: 0, Of: 2}}},
		"a graph of too few":       {Protocol: well, Graph: []parley.Set{{}}},
		"a rule of no time":        {Protocol: well, Links: []sim.Link{{Since: 5, Until: 5}}},
		"a rule of no chance":      {Protocol: well, Links: []sim.Link{{Loss: 1.1}}},
		"delays of a rule":         {Protocol: well, Links: []sim.Link{{Delay: sim.Delay{Most: 5}}}},
		"less than no loss":        {Protocol: well, Loss: -0.1},
		"more than all twice":      {Protocol: well, Twice: 2},
		"a crash in the coalition": {Protocol: well, Faulty: map[parley.ID]faulty.Behavior{0: faulty.Honest},
			Crashes: []sim.Crash{{At: 0, Step: 1}}},
	} {
		if !parleytest.Panics(func() { sim.Run(opt) }) {
			t.Errorf("%s: it runs", name)
		}
	}
}

// Traffic of correct processes is measured by the protocol's Size, by round if the protocol's cost is by
// round.
func TestMeasure(t *testing.T) {
	p := scripted(4, nil, func(s *parley.Step, event string) {
		if event == "start" {
			s.SendAll(parley.Msg{Kind: 1, Seq: 2, Value: 10})
			s.Keep(parley.Msg{Kind: 1, Value: 1})
		}
	})
	p.Size = func(e parley.Env, m parley.Msg) parley.Traffic { return parley.Traffic{Messages: 1, Bits: m.Value} }
	opt := sim.Options{Protocol: p, Measure: true, Faulty: map[parley.ID]faulty.Behavior{0: faulty.Honest}}
	all := parley.Traffic{Messages: 3*3 + 3, Bits: 90 + 3}
	if sent := sim.Run(opt).Stats.Sent; !reflect.DeepEqual(sent, []parley.Traffic{all}) {
		t.Error(sent)
	}
	opt.Protocol.Timing = parley.Synchronous
	if sent := sim.Run(opt).Stats.Sent; !reflect.DeepEqual(sent, []parley.Traffic{all}) {
		t.Error("without a theorem", sent)
	}
	opt.Protocol.Cost = func(n, m int) parley.Cost { return parley.Cost{} }
	rounds := []parley.Traffic{{Messages: 3, Bits: 3}, {}, {Messages: 9, Bits: 90}}
	if sent := sim.Run(opt).Stats.Sent; !reflect.DeepEqual(sent, rounds) {
		t.Error("by rounds", sent)
	}
	opt.Measure = false
	if sent := sim.Run(opt).Stats.Sent; len(sent) != 0 {
		t.Error(sent)
	}
}

// Refusals are counted by reason at correct processes, and separately for messages of faulty ones: there a
// message counts once, however many of its parts are refused, and messages of several senders that one step
// opens count each.
func TestRefusals(t *testing.T) {
	p := scripted(4, nil, func(s *parley.Step, event string) {
		switch {
		case event == "start":
			s.SendAll(say(uint64(s.Self)))
			s.SetTimer(0, 2000)
		case strings.HasSuffix(event, "from 0") && s.Self == 1:
			for range 3 {
				s.Refuse(0, "from 0")
			}
		case strings.HasSuffix(event, "from 1"):
			s.Refuse(1, "from 1")
		case event == "timeout 0" && s.Self == 2:
			for _, id := range []parley.ID{3, 0, 1, 3, 0} { // messages from 3 and 0, kept until now
				s.Refuse(id, "kept")
			}
		}
	})
	p.Timing = parley.Synchronous
	got := sim.Run(sim.Options{Protocol: p, Until: 2000, Delay: unit, Faulty: map[parley.ID]faulty.Behavior{
		0: faulty.Honest, 3: faulty.Honest,
	}}).Stats
	if want := map[string]uint64{"from 0": 3, "from 1": 1, "kept": 5}; !reflect.DeepEqual(got.Refused, want) ||
		got.FromFaulty != 4 || got.RefusedFaulty != 3 {
		t.Errorf("%+v", got)
	}
}

// Signatures verify only for their signer, bytes and seed, ideal ones and real ones.
func TestSigners(t *testing.T) {
	for name, c := range map[string]struct {
		make func(seed uint64) sim.Signer
		size int
	}{
		"ideal":   {sim.Ideal, 8},
		"Ed25519": {func(seed uint64) sim.Signer { return sim.Ed25519(seed, 4) }, 64},
	} {
		a, b := c.make(1), c.make(2)
		seen := make(map[string]string)
		for id := range parley.ID(4) {
			for size := range 40 {
				for _, fill := range []byte{0, 1, 0xFF} {
					text := slices.Repeat([]byte{fill}, size)
					sig := a.Sign(id, text)
					if len(sig) != c.size || !a.Verify(id, text, sig) || !slices.Equal(sig, a.Sign(id, text)) {
						t.Fatalf("%s: %d bytes of %#x by %d: %x", name, size, fill, id, sig)
					}
					if a.Verify((id+1)%4, text, sig) || b.Verify(id, text, sig) || a.Verify(id, append(text, 0), sig) ||
						a.Verify(id, text, sig[1:]) || a.Verify(id, text, nil) || a.Verify(id, text, append(sig, 0)) {
						t.Fatalf("%s: %d bytes of %#x by %d verify as something else", name, size, fill, id)
					}
					bad := slices.Clone(sig)
					bad[len(bad)/2] ^= 1
					if a.Verify(id, text, bad) {
						t.Fatalf("%s: a changed signature verifies", name)
					}
					what := fmt.Sprintf("%d by %d", text, id)
					if other, again := seen[string(sig)]; again && other != what {
						t.Fatalf("%s: %s and %s have the same signature", name, what, other)
					}
					seen[string(sig)] = what
				}
			}
		}
		if name == "Ed25519" && a.Verify(4, nil, a.Sign(0, nil)) {
			t.Error("a process that is not there has signed")
		}
	}
	signs := scripted(2, nil, func(s *parley.Step, event string) {
		if event == "start" && !s.Verify(s.Self, []byte("b"), s.Sign([]byte("b"))) {
			panic("not verified")
		}
	})
	for _, signer := range []sim.Signer{nil, sim.Ed25519(7, 2)} {
		if s := sim.Run(sim.Options{Protocol: signs, Signer: signer}); s.Stats.Signs != 2 || s.Stats.Verifies != 2 {
			t.Errorf("%+v", s.Stats)
		}
	}
}
