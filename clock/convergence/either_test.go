package convergence_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"parley"
	"parley/clock/convergence"
	"parley/faulty"
	"parley/sim"
)

// counted returns the correct processes whose clock counts at the end of a run: those whose last corner is not
// Leaves.
func counted(h *parley.History) (in parley.Set) {
	for _, d := range h.Deliveries {
		switch {
		case d.Msg.Kind == convergence.Enters && h.Correct(d.At):
			in.Add(d.At)
		case d.Msg.Kind == convergence.Leaves:
			in.Remove(d.At)
		}
	}
	return in
}

// Processes that know nothing of the others get synchronized clocks, whenever each of them is first heard:
// some by START within two delays, the others by reading those.
func TestEither(t *testing.T) {
	for _, c := range []convergence.Config{
		{N: 4, M: 1, Begin: convergence.Either}, {N: 7, M: 2, Begin: convergence.Either, Readings: 3}, {N: 1}, {N: 2},
	} {
		c.Begin = convergence.Either
		p, plan := convergence.New(c), planned(t, c)
		for seed := range uint64(30) {
			r := rand.New(rand.NewPCG(seed, 3))
			opt := drawn(p, plan, seed)
			for id := range opt.Faulty { // a process that is silent for a while counts as faulty
				if r.IntN(2) == 0 {
					opt.Faulty[id] = faulty.TwoFaced
				}
			}
			for i := range opt.Clocks {
				opt.Clocks[i].Offset = parley.Tick(r.Int64N(1 << 50))
			}
			opt.Until = 8 * plan.Period
			// No process hears the last correct process for some time, if that is not one fault too many.
			late := parley.ID(c.N)
			if c.M > 0 && seed%2 == 0 {
				opt.Faulty, late = nil, parley.ID(r.IntN(c.N))
				deaf := sim.Link{To: parley.SetOf(late), Until: parley.Tick(r.Int64N(int64(2 * plan.Period))), Loss: 1}
				mute := deaf
				mute.From, mute.To = deaf.To, parley.Set{}
				opt.Links = append(opt.Links, deaf, mute)
			}
			s := sim.Run(opt)
			if in := counted(&s.History); in.Len() != c.N-len(opt.Faulty) {
				t.Fatalf("n = %d, seed %d: only %v of %d are in (late: %d)", c.N, seed, in, c.N, late)
			}
			if err := broken(p, &s.History); err != nil {
				t.Fatalf("n = %d, seed %d, late %d: %v", c.N, seed, late, err)
			}
		}
	}
}

// All processes restart, or lose each other for a time: no process has a clock, and they begin from scratch.
func TestEitherBeginsAgain(t *testing.T) {
	c := convergence.Config{N: 4, M: 1, Begin: convergence.Either}
	p, plan := convergence.New(c), planned(t, c)
	for seed := range uint64(20) {
		half := parley.SetOf(0, 1)
		opt := sim.Options{
			Protocol: p, Seed: seed, Until: 12 * plan.Period,
			Delay: sim.Delay{Least: plan.Least, Most: plan.Least + plan.Eps},
			Links: []sim.Link{
				{From: half, To: parley.SetOf(2, 3), Since: 3 * plan.Period, Until: 6 * plan.Period, Loss: 1},
				{From: parley.SetOf(2, 3), To: half, Since: 3 * plan.Period, Until: 6 * plan.Period, Loss: 1},
			},
		}
		s := sim.Run(opt)
		left := len(corners(s, convergence.Leaves))
		if in := counted(&s.History); left < 4 || in.Len() != 4 {
			t.Fatalf("seed %d: %d times a clock was given up, and in the end %v are in", seed, left, in)
		}
	}
}

// m liars that repeat START, to some and not to others, start nothing, and do not move a clock that counts.
func TestEitherLiarsDoNotStart(t *testing.T) {
	c := convergence.Config{N: 4, M: 1, Begin: convergence.Either}
	plan := planned(t, c)
	h := newHand(t, c, 0)
	h.start(0, false)
	say := parley.Msg{Kind: convergence.Start}
	for k := range parley.Tick(5) {
		if h.receive(1000+k*2*plan.RoundTrip, 3, say); len(h.refused) > 0 {
			t.Errorf("a START a round trip later is refused: %v", h.refused)
		}
	}
	if h.receive(1001+8*plan.RoundTrip, 3, say); len(h.refused) != 1 {
		t.Error("a START at once again is not refused")
	}
	if _, in := h.show(20 * plan.RoundTrip); in {
		t.Error("one liar and this process begin")
	}
	// Two old messages and a new one are no start: the senders of the old ones may have a clock since.
	h = newHand(t, c, 0)
	h.start(0, false)
	h.receive(10, 1, say)
	h.receive(3*plan.Period, 3, say)
	if _, in := h.show(3 * plan.Period); in {
		t.Error("it begins by a START of long ago")
	}
	// Processes whose START is half a period old have begun without this one.
	h = newHand(t, c, 0)
	h.start(0, false)
	h.receive(3*plan.Period, 1, say)
	h.receive(3*plan.Period+plan.Period/2, 3, say)
	if _, in := h.show(3*plan.Period + plan.Period/2); in {
		t.Error("it begins by a START of those who have begun")
	}
}

// A process that has just got its clock from others that then give theirs up begins again with them. It does
// not continue alone until no clock is near its own.
func TestEitherJoinsProcessesThatBeginAgain(t *testing.T) {
	c := convergence.Config{N: 4, M: 1, Begin: convergence.Either}
	h := newHand(t, c, 0)
	h.start(0, false)
	plan := planned(t, c)
	for id := range parley.ID(3) { // they are far into a period
		h.answerFrom(0, id+1, plan.Period-3*plan.Threshold-plan.RoundTrip)
	}
	now, effects := h.expire()
	if !slices.ContainsFunc(effects, func(e parley.Effect) bool { return e.Op == parley.OpSetTimer && e.Timer == 1 }) {
		t.Fatalf("it does not wait for the next resynchronization: %v", effects)
	}
	h.receive(now, 1, parley.Msg{Kind: convergence.Start})
	h.receive(now, 2, parley.Msg{Kind: convergence.Start})
	if at, in := h.show(now); !in || at != 0 {
		t.Errorf("it shows %d, and is in: %v", at, in)
	}
}

// A clock that could not be read in time is asked for again. One slow answer does not exclude a clock from a
// resynchronization.
func TestReadings(t *testing.T) {
	c := four
	c.Readings = 3
	plan := planned(t, c)
	h, t1 := toReading(t, c)
	h.answerFrom(t1, 1, 0)
	for again := 1; again < 3; again++ {
		now, effects := h.expire()
		var asked []string
		for _, e := range effects {
			if e.Op == parley.OpSend {
				asked = append(asked, fmt.Sprint(e.To))
			}
		}
		if now-t1 > parley.Tick(again)*(plan.RoundTrip+1) || fmt.Sprint(asked) != "[2 3]" {
			t.Fatalf("after %d it asks %v again", now-t1, asked)
		}
		if again == 2 {
			h.answerFrom(now, 2, 0)
		}
	}
	now, effects := h.expire()
	if len(delivered(effects, convergence.Adjusts)) != 1 || now-t1 != plan.Window {
		t.Errorf("with three of four clocks, it does %v after %d", effects, now-t1)
	}
}

// answerFrom answers the last question for one process that is ahead by the given time.
func (h *hand) answerFrom(now parley.Tick, id parley.ID, ahead parley.Tick) {
	effects := h.step.Effects
	h.receive(now+10, id, tell(now, now+5+ahead))
	h.step.Now, h.step.Effects = now, effects
}

// A process that gets Anew joins again.
func TestRestartFromScratch(t *testing.T) {
	h := newHand(t, four, 0)
	h.start(70, false)
	effects := h.at(500, func(m parley.Machine, s *parley.Step) { m.Request(s, parley.Msg{Kind: convergence.Anew}) })
	if len(delivered(effects, convergence.Leaves)) != 1 {
		t.Fatalf("it does %v", effects)
	}
	if _, in := h.show(501); in {
		t.Error("its clock counts")
	}
	// The timer for the next resynchronization, set before, finds no clock.
	effects = h.at(four.Period, func(m parley.Machine, s *parley.Step) { m.Timeout(s, 1) })
	if len(effects) > 0 {
		t.Errorf("it resynchronizes: %v", effects)
	}
}

// Two parties give up their clocks one after the other, the second when the first has begun again. The second
// uses the time of the first and does not begin separately: otherwise the two would give up in turn forever,
// because neither is large enough.
func TestTwoParties(t *testing.T) {
	c := convergence.Config{N: 5, M: 1, Begin: convergence.Either}
	p, plan := convergence.New(c), planned(t, c)
	for share := range parley.Tick(20) {
		opt := drawn(p, plan, 1)
		opt.Faulty, opt.Until = nil, 20*plan.Period
		for id := range parley.ID(5) {
			when := 4*plan.Period + plan.Period/3
			if id%2 == 1 {
				when += share * plan.Period / 80
			}
			opt.Requests = append(opt.Requests, sim.Request{At: id, When: when, Msg: parley.Msg{Kind: convergence.Anew}})
		}
		s := sim.Run(opt)
		leaves := len(corners(s, convergence.Leaves))
		if in := counted(&s.History); in.Len() != 5 || leaves > 5 {
			t.Errorf("%d eightieths of a period apart: in at the end: %v; %d times a clock was given up", share, in, leaves)
		}
	}
}

// One process of two or three, or half of six, loses the others and finds them again at any time of a period:
// all get synchronized clocks again, and keep them. No party is so small that it begins alone.
func TestSmallPartiesComeTogether(t *testing.T) {
	for _, c := range []convergence.Config{{N: 2}, {N: 3}, {N: 6, M: 1}} {
		c.Begin = convergence.Either
		p, plan := convergence.New(c), planned(t, c)
		back := 6 * plan.Period
		for share := range parley.Tick(20) {
			opt := drawn(p, plan, 1)
			opt.Faulty, opt.Until = nil, back+12*plan.Period
			if c.M == 0 {
				when := back - 3*plan.Period - share*plan.Period/20
				opt.Crashes = []sim.Crash{{At: parley.ID(c.N - 1), When: when, Back: 3 * plan.Period}}
			} else {
				half := parley.SetOf(0, 1, 2)
				cut := sim.Link{From: half, To: parley.Everyone(c.N).Minus(half), Since: back - 3*plan.Period, Until: back, Loss: 1}
				other := cut
				other.From, other.To = cut.To, cut.From
				opt.Links = append(opt.Links, cut, other)
				for id := range parley.ID(3) { // meanwhile both parties begin by themselves, at different times
					when := back - plan.Period - share*plan.Period/40
					opt.Requests = append(opt.Requests, sim.Request{At: id, When: when, Msg: parley.Msg{Kind: convergence.Anew}})
				}
			}
			s := sim.Run(opt)
			last := slices.Max(append(times(corners(s, convergence.Leaves)), 0))
			if in := counted(&s.History); in.Len() != c.N || last > back+5*plan.Period {
				t.Errorf("n = %d, %d twentieths of a period: in at the end: %v; a clock was given up %d periods after all were back",
					c.N, share, in, (last-back)/plan.Period)
			}
		}
	}
}

// A process that slept between the reading and the adjustment knows that its readings are old: it joins again.
func TestSleepsThroughTheWindow(t *testing.T) {
	plan := planned(t, four)
	for late, adjusts := range map[parley.Tick]int{plan.Threshold: 1, plan.Threshold + 1: 0} {
		h, t1 := toReading(t, four)
		for id := range parley.ID(3) {
			h.answerFrom(t1, id+1, 0)
		}
		effects := h.at(t1+plan.Window+late, func(m parley.Machine, s *parley.Step) { m.Timeout(s, 2) })
		if len(delivered(effects, convergence.Adjusts)) != adjusts || len(delivered(effects, convergence.Leaves)) != 1-adjusts {
			t.Errorf("%d late, it does %v", late, effects)
		}
	}
}

// A clock that was read and is beyond the threshold is counted against its process.
func TestBeyondIsCounted(t *testing.T) {
	plan := planned(t, four)
	h, t1 := toReading(t, four)
	timers := h.step.Effects
	h.answerFrom(t1, 1, plan.Threshold)
	h.answerFrom(t1, 2, -plan.Threshold-1)
	h.answerFrom(t1, 3, 0)
	h.step.Now, h.step.Effects = t1, timers
	if h.expire(); len(h.refused) != 1 || h.refused[0] != "a clock beyond the threshold" {
		t.Errorf("refused: %v", h.refused)
	}
}
