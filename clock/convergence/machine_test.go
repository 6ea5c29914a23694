package convergence_test

import (
	"slices"
	"testing"

	"parley"
	"parley/clock/convergence"
)

// four is a small system with round numbers: delta 200, error of a reading 10.
var four = convergence.Config{
	N: 4, M: 1, Least: 5, Eps: 10, Rho: 1, Period: 100_000, Slew: 10_000, Delta: 200,
}

// toReading brings a machine that begins at 0 to its first resynchronization.
func toReading(t *testing.T, c convergence.Config) (*hand, parley.Tick) {
	t.Helper()
	h := newHand(t, c, 0)
	if got := delivered(h.start(0, false), convergence.Enters); len(got) != 1 || got[0].Value != 0 {
		t.Fatalf("begins with %v", got)
	}
	now, effects := h.expire()
	if now != c.Period || len(delivered(effects, convergence.Reads)) != 1 {
		t.Fatalf("at time %d it does %v", now, effects)
	}
	sent := slices.DeleteFunc(slices.Clone(effects), func(e parley.Effect) bool { return e.Op != parley.OpSend })
	if len(sent) != 1 || sent[0].To != parley.All || sent[0].Msg.Kind != convergence.Read ||
		sent[0].Msg.Seq != uint64(now) {
		t.Fatalf("it sends %v", sent)
	}
	return h, now
}

// window returns when the window that opened at now closes.
func window(h *hand, effects []parley.Effect, now parley.Tick) parley.Tick {
	h.Helper()
	for _, e := range effects {
		if e.Op == parley.OpSetTimer {
			return now + e.After
		}
	}
	h.Fatal("no window")
	return 0
}

// "A process computes the average of the difference in clock values and increments its clock by the average
// increment": one clause a step, with numbers.
func TestResynchronization(t *testing.T) {
	for _, form := range []convergence.Form{convergence.Differences, convergence.Values} {
		c := four
		c.Form = form
		plan := planned(t, c)
		h, t1 := toReading(t, c)
		closes := window(h, h.step.Effects, t1)
		if closes-t1 != plan.Window {
			t.Errorf("the window is %d, not %d", closes-t1, plan.Window)
		}
		timers := h.step.Effects
		// Process 1 is 101 ahead: with a delay of 12 there and 8 back, it is read as 103.
		h.receive(t1+20, 1, tell(t1, t1+12+101))
		// Process 2 is 51 behind, read exactly. Process 3 shows an impossible time.
		h.receive(t1+10, 2, tell(t1, t1+5-51))
		h.receive(t1+10, 3, tell(t1, t1+5+plan.Threshold+1))
		if len(h.refused) > 0 {
			t.Error(h.refused)
		}
		h.step.Now, h.step.Effects = t1, timers
		now, effects := h.expire()
		if len(delivered(effects, convergence.Adjusts)) != 1 {
			t.Fatalf("%v", effects)
		}
		if before, ok := h.show(now); before != now || !ok {
			t.Errorf("the clock jumps to %d at %d", before, now)
		}
		// (0 + 103 - 51 + 0)/4 = 13, evenly over the span.
		for part := range parley.Tick(11) {
			past := plan.Span * part / 10
			if got, _ := h.show(now + past); got != now+past+13*past/plan.Span {
				t.Errorf("after %d of %d ticks the clock is adjusted by %d", past, plan.Span, got-now-past)
			}
		}
		settles, effects := h.expire()
		corner := delivered(effects, convergence.Settles)
		if settles != now+plan.Span || len(corner) != 1 || parley.Tick(corner[0].Value) != settles+13 ||
			parley.Tick(corner[0].Seq) != settles {
			t.Errorf("at %d it delivers %v", settles, corner)
		}
		if next, _ := h.expire(); next != 2*c.Period-13 {
			t.Errorf("the next resynchronization is at %d", next)
		}
	}
}

// A process sends its time to any process that asks, while its clock counts.
func TestAnswers(t *testing.T) {
	h := newHand(t, four, 0)
	h.start(70, false)
	effects := h.receive(1070, 2, ask(999))
	want := tell(999, 1070)
	if len(effects) != 1 {
		t.Fatalf("%v", effects)
	}
	got := effects[0].Msg
	if effects[0].To != 2 || got.Kind != want.Kind || got.Seq != want.Seq || got.Value != want.Value {
		t.Errorf("%v", effects)
	}
	// An indication of a layer beneath is not a refusal.
	h.receive(1071, 0, parley.Msg{Kind: parley.Suspect, Origin: 2})
	if len(h.refused) > 0 {
		t.Error(h.refused)
	}
	for _, begin := range []convergence.Begin{convergence.Cold, convergence.Joining} {
		c := four
		c.Begin = begin
		h := newHand(t, c, 0)
		h.start(70, false)
		if effects := h.receive(1070, 2, ask(999)); len(effects) > 0 {
			t.Errorf("a process that is %s answers %v", c.Begin, effects)
		}
	}
}

// Invalid messages are refused and change nothing.
func TestRefusals(t *testing.T) {
	plan := planned(t, four)
	with := func(m parley.Msg) parley.Msg {
		m.Kind, m.Seq, m.Value = convergence.Time, 100_000, 100_005
		return m
	}
	for name, c := range map[string]struct {
		msg parley.Msg
		at  parley.Tick
		why string
	}{
		"late":           {tell(100_000, 100_100), plan.RoundTrip + 1, "reading took too long"},
		"another T1":     {tell(99_999, 100_100), 10, "a time that was not asked for"},
		"beyond":         {tell(100_000, 1<<62), 10, "a time out of all reckoning"},
		"far below":      {tell(100_000, -1<<63), 10, "a time out of all reckoning"},
		"a body":         {with(parley.Msg{Body: []byte{1}}), 10, "fields that are not used"},
		"an origin":      {with(parley.Msg{Origin: 1}), 10, "fields that are not used"},
		"a read's value": {parley.Msg{Kind: convergence.Read, Value: 1}, 10, "fields that are not used"},
		"a kind":         {parley.Msg{Kind: 9}, 10, "no message of this protocol"},
		"a start":        {parley.Msg{Kind: convergence.Start}, 10, "no message of this protocol"},
	} {
		h, t1 := toReading(t, four)
		before := parley.Save(h.machine, t1, nil)
		h.receive(t1+c.at, 2, c.msg)
		if len(h.refused) != 1 || h.refused[0] != c.why {
			t.Errorf("%s: refused %v", name, h.refused)
		}
		if !slices.Equal(before, parley.Save(h.machine, t1, nil)) {
			t.Errorf("%s: it changes something", name)
		}
	}
	h, t1 := toReading(t, four)
	h.receive(t1+plan.RoundTrip, 2, tell(t1, t1))
	if len(h.refused) > 0 {
		t.Error("a reading that took as long as it may is refused")
	}
	if h.receive(t1+plan.RoundTrip, 2, tell(t1, t1+50)); len(h.refused) != 1 {
		t.Error("a second reading of one clock is taken")
	}
}

// A process that finds fewer than n-m clocks near its own leaves, sends nothing more, and joins.
func TestAlarm(t *testing.T) {
	plan := planned(t, four)
	for far := range 4 {
		h, t1 := toReading(t, four)
		timers := h.step.Effects
		for q := range parley.ID(3) {
			ahead := plan.Threshold
			if int(q) < far {
				ahead++
			}
			h.receive(t1+10, q+1, tell(t1, t1+5+ahead))
		}
		h.step.Now, h.step.Effects = t1, timers
		now, effects := h.expire()
		left := delivered(effects, convergence.Leaves)
		if (len(left) == 1) != (far > 1) {
			t.Errorf("with %d clocks too far off it does %v", far, effects)
		}
		if len(left) == 0 {
			continue
		}
		if _, ok := h.show(now); ok || len(left[0].Body) == 0 {
			t.Errorf("it is still in, or does not say why: %v", left)
		}
		if h.receive(now+1, 2, ask(1)); len(h.step.Effects) > 0 {
			t.Error("it still tells the time")
		}
	}
}

// A process that could not wake when the clocks were due to be read does not adjust after all others have done
// it.
func TestSleepsThroughAResynchronization(t *testing.T) {
	plan := planned(t, four)
	for _, late := range []parley.Tick{0, plan.Threshold, plan.Threshold + 1, 3 * four.Period} {
		h := newHand(t, four, 0)
		effects := h.start(0, false)
		timer := effects[len(effects)-1].Timer
		effects = h.at(four.Period+late, func(m parley.Machine, s *parley.Step) { m.Timeout(s, timer) })
		if left := delivered(effects, convergence.Leaves); (len(left) == 1) != (late > plan.Threshold) {
			t.Errorf("%d ticks late: %v", late, effects)
		}
	}
}

// A clock that begins near a multiple of the period, ahead or behind, is first resynchronized at the multiple
// after it, like all others.
func TestFirstResynchronization(t *testing.T) {
	const year = 31_536_000_000_000_000
	for _, now := range []parley.Tick{-40_000, -1, 0, 1, 49_999, 54*year - 50_000, 54*year + 40_000} {
		h := newHand(t, four, 0)
		h.start(now, false)
		nearest := (now + 50_000) / 100_000 * 100_000
		if at, _ := h.expire(); at != nearest+100_000 {
			t.Errorf("at %d the next one is at %d", now, at)
		}
	}
}

// A start: START from m+1 processes makes a process send it, and START from 2m+1 makes it begin.
func TestStartClauses(t *testing.T) {
	c := four
	c.Begin = convergence.Cold
	say := parley.Msg{Kind: convergence.Start}
	h := newHand(t, c, 0)
	if effects := h.start(500, false); len(effects) > 0 {
		t.Errorf("it does %v unasked", effects)
	}
	if effects := h.receive(600, 1, say); len(effects) > 0 {
		t.Errorf("one process that may lie makes it do %v", effects)
	}
	if effects := h.receive(650, 1, say); len(effects) > 0 || len(h.refused) != 1 {
		t.Errorf("saying it twice makes it do %v", effects)
	}
	effects := h.receive(700, 2, say)
	if len(effects) == 0 || effects[0].Op != parley.OpSend || effects[0].Msg.Kind != convergence.Start {
		t.Fatalf("two make it do %v", effects)
	}
	// With its own START that is three: it begins.
	if at, ok := h.show(700); at != 0 || !ok {
		t.Errorf("its clock shows %d", at)
	}
	// A process that is asked sends START once, and does not begin by its own message.
	h = newHand(t, c, 0)
	h.start(500, false)
	begin := func(m parley.Machine, s *parley.Step) { m.Request(s, parley.Msg{Kind: parley.Propose}) }
	if effects := h.at(600, begin); len(effects) != 1 || effects[0].Msg.Kind != convergence.Start {
		t.Errorf("asked, it does %v", effects)
	}
	if effects := h.at(601, begin); len(effects) > 0 {
		t.Errorf("asked again, it does %v", effects)
	}
	if effects := h.receive(602, 1, say); len(effects) > 0 {
		t.Errorf("two make it begin: %v", effects)
	}
}

// joiner restarts a machine whose hardware clock is behind all others' by the given time, and has it read
// three of them, which are one tick apart.
func joiner(t *testing.T, behind parley.Tick) (*hand, parley.Tick) {
	t.Helper()
	h := newHand(t, four, 0)
	h.start(7, true)
	h.answer(7, behind+1, behind+2, behind+3)
	now, _ := h.expire()
	return h, now
}

// answer answers a question of the machine at once, for processes that are ahead by the given times, and
// leaves the timers as they are.
func (h *hand) answer(now parley.Tick, ahead ...parley.Tick) {
	effects := h.step.Effects
	t1 := parley.Tick(effects[len(effects)-2].Msg.Seq)
	for i, d := range ahead {
		h.receive(now+10, parley.ID(i+1), tell(t1, t1+5+d))
	}
	h.step.Now, h.step.Effects = now, effects
}

// A joiner takes the median of at least 2m+1 clocks, and sends its time to no process before it counts: after
// one resynchronization.
func TestJoinClauses(t *testing.T) {
	plan := planned(t, four)
	h := newHand(t, four, 0)
	h.start(7, true)
	h.answer(7, 1000, 1000)
	now, effects := h.expire()
	if at, ok := h.show(now); at != now || ok {
		t.Fatalf("it joins by two readings of which one may be false: %v", effects)
	}
	if now, _ = h.expire(); now > 2*plan.Period {
		t.Fatal("it does not ask again")
	}

	const behind = 1_080_000
	h, now = joiner(t, behind)
	if at, ok := h.show(now); at != now+behind+2 || ok {
		t.Fatalf("it shows %d, and not what the middle one does", at)
	}
	timers := h.step.Effects
	if h.receive(now, 2, ask(1)); len(h.step.Effects) > 0 {
		t.Error("it tells the time before it is in")
	}
	h.step.Now, h.step.Effects = now, timers
	now, _ = h.expire()
	if at, _ := h.show(now); at != 1_100_000 {
		t.Fatalf("its first resynchronization is at %d", at)
	}
	// Its clock came from a reading: it may be another error away from all others.
	far := plan.Threshold + plan.Error
	h.answer(now, far, far, far)
	h.expire()
	now, effects = h.expire()
	entered := delivered(effects, convergence.Enters)
	if len(entered) != 1 || parley.Tick(entered[0].Value) != now+behind+2+(3*far+2)/4 {
		t.Fatalf("after it, it does %v", effects)
	}
	if h.receive(now, 2, ask(1)); len(h.step.Effects) != 1 {
		t.Error("in, it does not tell the time")
	}
}

// A joiner whose clock has lost the year joins others that count the nanoseconds since 1970. So does one that
// is as far ahead.
func TestJoinsFromFar(t *testing.T) {
	const since1970 = 1_800_000_000_000_000_000
	for _, behind := range []parley.Tick{since1970, -since1970} {
		h, now := joiner(t, behind)
		if at, _ := h.show(now); at != now+behind+2 {
			t.Errorf("%d behind, it shows %d, and not what the middle one does", behind, at)
		}
	}
}

// A joiner does not use clocks that are being adjusted: it asks again when all have settled.
func TestJoinWaitsUntilClocksSettle(t *testing.T) {
	plan := planned(t, four)
	settled := plan.Window + plan.Span + 2*plan.Threshold + plan.RoundTrip
	for _, c := range []struct {
		since parley.Tick // time in the period at which it has read the clocks
		waits parley.Tick
	}{
		{0, settled}, {settled - 1, 1}, {settled, 0}, {plan.Period - 2*plan.Threshold, 0},
		{plan.Period - 2*plan.Threshold + 1, 2*plan.Threshold - 1 + settled},
	} {
		h, now := joiner(t, 5*four.Period+c.since-7-plan.RoundTrip-2)
		if at, _ := h.show(now); at != 5*four.Period+c.since {
			t.Fatalf("it shows %d", at)
		}
		next, effects := h.expire()
		asks := len(effects) == 2 && effects[0].Msg.Kind == convergence.Read
		at, _ := h.show(next)
		if want := 5*four.Period + c.since + c.waits; c.waits > 0 && (!asks || at != want) {
			t.Errorf("%d into the period: at %d, and not %d, it does %v", c.since, at, want, effects)
		}
		if c.waits == 0 && at != 6*four.Period {
			t.Errorf("%d into the period: at %d it does %v", c.since, at, effects)
		}
	}
}
