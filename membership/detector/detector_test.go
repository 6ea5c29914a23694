package detector_test

import (
	"bytes"
	"testing"

	"parley"
	"parley/membership/detector"
	"parley/parleytest"
	"parley/sim"
	"parley/stack"
)

// run runs a detector and returns the run.
func run(c detector.Config, opt sim.Options) *sim.Sim {
	opt.Protocol = detector.New(c)
	return sim.Run(opt)
}

// must fails the test unless the named properties of a run hold.
func must(t *testing.T, s *sim.Sim, names ...string) {
	t.Helper()
	for _, p := range detector.New(detector.Config{N: 2}).Properties {
		for _, name := range names {
			if p.Name != name {
				continue
			}
			if err := p.Check(&s.History); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func indicated(s *sim.Sim, at parley.ID, kind parley.Kind, of parley.ID) (when []parley.Tick) {
	for _, q := range s.History.Indications {
		if q.At == at && q.Msg.Kind == kind && q.Msg.Origin == of {
			when = append(when, q.When)
		}
	}
	return when
}

func TestSuite(t *testing.T) {
	for _, c := range []detector.Config{{N: 4, Beats: 12}, {N: 3, Beats: 8, Again: 1}, {N: 2, Beats: 9}} {
		t.Run("", func(t *testing.T) {
			parleytest.Suite(t, detector.New(c), parleytest.Options{Seeds: 60})
		})
	}
}

func FuzzReceive(f *testing.F) { parleytest.Fuzz(f, detector.New(detector.Config{N: 4, Beats: 12})) }

// Accuracy: with bounded delays and a timeout of period, twice the lateness and delay, only crashed processes
// are suspected.
func TestAccuracyWithinTheBound(t *testing.T) {
	c := detector.Config{N: 5, Period: 400, Delay: 900, Late: 50, Timeout: 400 + 2*50 + 900, Beats: 40}
	if err := c.Accurate(); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(60) {
		s := run(c, sim.Options{Seed: seed, Crashes: []sim.Crash{{At: 4, When: 3000 + parley.Tick(seed)}}})
		must(t, s, detector.Completeness, detector.Accuracy, detector.EventualAccuracy, detector.Detection)
	}
}

// Beyond the bound there are false suspicions: with a timeout of a period and half the delay, some gap
// between two heartbeats is longer.
func TestInaccuracyBeyondTheBound(t *testing.T) {
	c := detector.Config{N: 5, Period: 400, Timeout: 800, Beats: 40}
	if c.Accurate() == nil {
		t.Fatal("a timeout of 800 for delays of 900 is said to be accurate")
	}
	wrong := 0
	for seed := range uint64(20) {
		s := run(c, sim.Options{Seed: seed})
		wrong += int(s.Stats.FalseSuspicions)
		must(t, s, detector.Completeness, detector.EventualAccuracy)
		for _, p := range detector.New(c).Promises(s.RunConditions()) {
			if p.Property == detector.Accuracy && p.Holds {
				t.Fatal("accuracy is promised for too short a timeout")
			}
		}
	}
	if wrong == 0 {
		t.Fatal("no false suspicion in 20 runs: the bound is not understood")
	}
}

// The bound is sharp. One heartbeat arrives at once, and the next as late as possible: a timeout one tick
// shorter than period and delay is too short.
func TestTheBoundIsSharp(t *testing.T) {
	for _, short := range []parley.Tick{0, 2} {
		c := detector.Config{N: 2, Period: 500, Late: 1, Timeout: 500 + 2 + 900 - short}.WithDefaults()
		if got := c.Accurate() == nil; got != (short == 0) {
			t.Errorf("%d ticks short: accurate is %v", short, got)
		}
		// A heartbeat that leaves at 499 and takes one tick; one that leaves a period and the lateness after
		// it and takes as long as possible; and a check just before it is read: at that tick, by a process
		// that is itself one tick late in reading.
		m := detector.NewMonitor(c, 1)
		m.Watch(0, parley.Everyone(2))
		m.Check(500)
		m.Heard(500, 0)
		m.Check(1000)
		m.Check(1500)
		at := 499 + c.Period + c.Late + c.Delay + c.Late
		if wrong := m.Check(at).Has(0); wrong != (short == 2) {
			t.Errorf("%d ticks short: suspected is %v", short, wrong)
		}
	}
}

// Completeness, with any number of crashes, within the time bound, over links that lose nothing.
func TestCrashesAreDetectedInTime(t *testing.T) {
	for _, n := range []int{2, 4, 7} {
		c := detector.Config{N: n, Beats: 60}
		for seed := range uint64(15) {
			var crashes []sim.Crash
			for id := 1; id < n; id++ {
				crashes = append(crashes, sim.Crash{At: parley.ID(id), When: 1000 + parley.Tick(seed*37) + 700*parley.Tick(id)})
			}
			s := run(c, sim.Options{Seed: seed, Crashes: crashes})
			must(t, s, detector.Completeness, detector.Accuracy)
			for _, crash := range crashes {
				when := indicated(s, 0, parley.Suspect, crash.At)
				if len(when) != 1 || when[0] <= crash.When || when[0] > crash.When+c.Detection() {
					t.Fatalf("n=%d seed %d: process %d crashed at %d, suspected at %v, not within %d",
						n, seed, crash.At, crash.When, when, c.Detection())
				}
			}
		}
	}
}

// talker sends a message every 100 ticks above a detector, and records messages of processes that it was told
// to suspect.
type talker struct {
	parley.Base
	suspected parley.Set
	late      *int
	said      int
}

func (p *talker) Start(s *parley.Step) { s.SetTimer(1, 100) }

func (p *talker) Timeout(s *parley.Step, _ parley.Timer) {
	s.SendAll(parley.Msg{Kind: 1})
	if p.said++; p.said < 100 {
		s.SetTimer(1, 100)
	}
}

func (p *talker) Receive(_ *parley.Step, from parley.ID, m parley.Msg) {
	switch {
	case m.Kind == parley.Suspect:
		p.suspected.Add(m.Origin)
	case m.Kind < parley.Local && p.suspected.Has(from):
		*p.late++
	}
}

func (p *talker) State(*parley.Vars) {}

// Within the bound a suspicion comes after the last message of the link, including messages of layers above.
func TestSuspicionComesLast(t *testing.T) {
	for _, short := range []bool{false, true} {
		c := detector.Config{N: 4, Period: 500, Delay: 900, Timeout: 1600, Beats: 30}
		if short {
			c.Timeout = 600
		}
		late := 0
		above := parley.Protocol{Name: "talker", N: 4, New: func(parley.ID) parley.Machine { return &talker{late: &late} }}
		for seed := range uint64(20) {
			s := sim.Run(sim.Options{Protocol: stack.New(detector.New(c), above), Seed: seed,
				Crashes: []sim.Crash{{At: 2, When: 2000 + parley.Tick(seed)*61, Effects: 2}}})
			if !short {
				must(t, s, detector.Completeness, detector.Accuracy)
			}
		}
		if (late > 0) != short {
			t.Errorf("timeout %d: %d messages came after the suspicion of their sender", c.Timeout, late)
		}
	}
}

// A paused process suspects no process, although it has heard nothing; the others suspect it, and later trust
// it again.
func TestPausedProcessSuspectsNoOther(t *testing.T) {
	c := detector.Config{N: 4, Beats: 60}
	for seed := range uint64(20) {
		// The pause begins just before the process would check the others.
		s := run(c, sim.Options{Seed: seed, Pauses: []sim.Pause{{At: 3, From: 2400 + parley.Tick(seed)*29, For: 6000}}})
		for q := range parley.ID(3) {
			if when := indicated(s, 3, parley.Suspect, q); len(when) > 0 {
				t.Fatalf("seed %d: the process that was paused suspected %d at %v", seed, q, when)
			}
			if len(indicated(s, q, parley.Suspect, 3)) == 0 || len(indicated(s, q, detector.Trust, 3)) == 0 {
				t.Fatalf("seed %d: process %d did not suspect the paused one and take it back", seed, q)
			}
		}
		must(t, s, detector.Completeness, detector.EventualAccuracy)
	}
}

// After its pause a process still suspects one that crashed during the pause.
func TestCrashDuringOwnPause(t *testing.T) {
	c := detector.Config{N: 3, Beats: 60}
	s := run(c, sim.Options{Pauses: []sim.Pause{{At: 0, From: 2000, For: 5000}}, Crashes: []sim.Crash{{At: 2, When: 2500}}})
	when := indicated(s, 0, parley.Suspect, 2)
	if len(when) != 1 || when[0] <= 7000 || when[0] > 7000+c.Detection() {
		t.Errorf("suspected at %v", when)
	}
	must(t, s, detector.Completeness)
}

// With delays longer than configured, the detector is wrong, trusts again, and waits longer: it is wrong only
// a few times, and eventually not at all.
func TestTimeoutsGrow(t *testing.T) {
	opt := sim.Options{Delay: sim.Delay{Least: 1, Most: 3000}, Promised: parley.ModelAssumptions{Delay: 900}}
	total := 0
	for seed := range uint64(10) {
		opt.Seed = seed
		s := run(detector.Config{N: 4, Timeout: 1000, Beats: 400, Again: 1}, opt)
		must(t, s, detector.EventualAccuracy)
		for at := range parley.ID(4) {
			for of := range parley.ID(4) {
				when := indicated(s, at, parley.Suspect, of)
				// From 1000, in steps of 500, it takes six suspicions to exceed 3000+500.
				if len(when) > 6 {
					t.Fatalf("seed %d: process %d suspected %d %d times", seed, at, of, len(when))
				}
				total += len(when)
			}
		}
	}
	if total == 0 {
		t.Fatal("no suspicion at all")
	}
}

// Lost heartbeats look like a crash. Crashed processes are still found, and accuracy is not promised.
func TestLoss(t *testing.T) {
	c := detector.Config{N: 4, Beats: 30}
	wrong := 0
	for seed := range uint64(30) {
		s := run(c, sim.Options{Seed: seed, Loss: 0.4, Crashes: []sim.Crash{{At: 1, When: 4000}}})
		must(t, s, detector.Completeness)
		wrong += int(s.Stats.FalseSuspicions)
		parleytest.Judge(t, detector.New(c), s, seed)
	}
	if wrong == 0 {
		t.Error("with four of ten heartbeats lost nobody was suspected wrongly")
	}
}

// A restarted process is trusted again, and suspected again if it crashes again.
func TestRestart(t *testing.T) {
	s := run(detector.Config{N: 3, Beats: 60}, sim.Options{Crashes: []sim.Crash{
		{At: 1, When: 2000, Back: 6000}, {At: 1, When: 15000},
	}})
	for _, at := range []parley.ID{0, 2} {
		if s, r := indicated(s, at, parley.Suspect, 1), indicated(s, at, detector.Trust, 1); len(s) != 2 || len(r) != 1 {
			t.Errorf("process %d: suspected at %v, trusted at %v", at, s, r)
		}
	}
	must(t, s, detector.Completeness, detector.Accuracy)
}

// A run ends when all processes rest, but not before earlier crashes are suspected.
func TestResting(t *testing.T) {
	c := detector.Config{N: 3, Beats: 5}
	s := run(c, sim.Options{Crashes: []sim.Crash{{At: 2, When: 1700}}})
	if !s.History.Over || s.Now() > 10000 {
		t.Errorf("the run goes on until %d", s.Now())
	}
	must(t, s, detector.Completeness, detector.Accuracy)
	if len(indicated(s, 0, detector.Resting, 0)) != 1 || len(indicated(s, 0, parley.Suspect, 2)) != 1 {
		t.Errorf("indications: %v", s.History.Indications)
	}
	if s := run(c, sim.Options{}); s.Stats.Suspicions > 0 || s.Stats.Sends != 3*2*5 {
		t.Errorf("%d suspicions, %d heartbeats of 3 processes that rest after 5", s.Stats.Suspicions, s.Stats.Sends)
	}
}

// A malformed heartbeat is refused, and is no sign of life.
func TestNoHeartbeat(t *testing.T) {
	m := detector.New(detector.Config{N: 2}).New(0)
	h := &refusals{}
	s := &parley.Step{N: 2, Host: h}
	m.Start(s)
	for _, bad := range []parley.Msg{
		{}, {Kind: 2}, {Kind: detector.Beat, Value: 2}, {Kind: detector.Beat, Seq: 1}, {Kind: detector.Beat, Origin: 1},
		{Kind: detector.Beat, Body: []byte{0}},
	} {
		before := parley.Save(m, 0, nil)
		s.Now, h.n = s.Now+1, 0
		m.Receive(s, 1, bad)
		if s.Now = 0; h.n != 1 || !bytes.Equal(before, parley.Save(m, 0, nil)) {
			t.Errorf("%v: refused %d times", bad, h.n)
		}
	}
}

type refusals struct {
	parley.Host
	n int
}

func (r *refusals) Refused(_, _ parley.ID, _ string) { r.n++ }
