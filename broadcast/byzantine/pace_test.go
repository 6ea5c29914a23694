package byzantine

import (
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
	"parley/trace"
)

// While somebody is silent, a process that is asked for much at once puts it into slots that
// begin one after the other, so that they do not end together; more and more of them, as long
// as that goes well. When all slots end early it does not wait.
func TestPace(t *testing.T) {
	const requests, batch, size = 240, 1000, 200
	slot := 2 * lockstep.Called.Delta
	run := func(silent bool) (at map[parley.Tick]int, last parley.Tick) {
		opt := sim.Options{
			Protocol: New(Config{N: 4, M: 1, Batch: batch, Queue: 100 * batch}, lockstep.Called),
			Delay:    sim.Delay{Least: 10, Most: 10},
		}
		if silent {
			opt.Faulty = map[parley.ID]faulty.Behaviour{3: faulty.Silent}
		}
		for range requests {
			opt.Requests = append(opt.Requests, sim.Request{At: 0, When: 1, Msg: problem.Request(make([]byte, size))})
		}
		at = make(map[parley.Tick]int)
		opt.Observe = func(op trace.Op, h parley.Happening) {
			if op == trace.Deliver && h.At == 1 {
				at[h.When] += size
				last = h.When
			}
		}
		s := sim.Run(opt)
		sum := 0
		for _, bytes := range at {
			sum += bytes
		}
		if sum != requests*size {
			t.Fatalf("silent: %v: %d bytes of %d: %v", silent, sum, requests*size, s.Stats.Refused)
		}
		return at, last
	}
	at, last := run(true)
	for when, bytes := range at {
		if bytes > batch {
			t.Errorf("%d bytes at %d: more than a slot", bytes, when)
		}
	}
	first := parley.Tick(firstWindow * batch)
	if even := requests * size * slot / first; last < slot || last > even {
		t.Errorf("all is delivered at %d: a window that stays would take %d", last, even)
	}
	if _, early := run(false); early > slot/4 {
		t.Errorf("all is delivered at %d though nobody is silent, and a slot takes up to %d", early, slot)
	}
}

// The window grows when it was in use and a slot was in time, whether that ended early or by
// the clock; and halves when one was late, once for all that were under way.
func TestPaceWindow(t *testing.T) {
	const batch = 1 << 10
	when := lockstep.Schedule{Delta: 8000, Slack: 800, OnCall: true}
	p := pace{window: 8 * batch}
	now := parley.Tick(0)
	for _, c := range []struct {
		what       string
		ago, takes parley.Tick // since when, and for how long, the slot goes on
		held       bool
		window     int
	}{
		{"not in use", 10, 10, false, 8 * batch},
		{"early", 10, 10, true, 8*batch + batch/4},
		{"by the clock", 16_100, 16_100, true, 8*batch + batch/2},
		{"late, for other reasons", 16_300, 16_300, false, 8*batch + batch/2},
		{"late", 16_300, 16_300, true, 4*batch + batch/4},
		{"late, from before", 16_300, 16_400, true, 4*batch + batch/4},
		{"late where it might be early", 2_000, 2_000, true, 2*batch + batch/8},
		{"in time again", 16_000, 16_000, true, 2*batch + batch/8 + batch/16},
	} {
		if c.takes == c.ago {
			now += 2 * c.takes
		}
		p.over(now, &part{size: batch, begun: now - c.takes, held: c.held}, when, batch)
		if p.window != c.window {
			t.Fatalf("%s: a window of %d, want %d", c.what, p.window, c.window)
		}
	}
	for range 10_000 {
		now += 100
		p.over(now, &part{size: batch, begun: now - 100, held: true}, when, batch)
	}
	if p.window != mostWindow*batch {
		t.Errorf("all in time: a window of %d", p.window)
	}
	for range 100 {
		now += 20_000
		p.over(now, &part{size: batch, begun: now - 19_000, held: true}, when, batch)
	}
	if p.window != batch {
		t.Errorf("none in time: a window of %d", p.window)
	}
}
