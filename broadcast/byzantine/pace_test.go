package byzantine

import (
	"slices"
	"testing"

	"parley"
	"parley/broadcast/problem"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
	"parley/trace"
)

// While a process is silent, another one with many requests at once puts them into slots that begin one after
// the other, so that they do not end together; the number grows as long as that goes well. If all slots end
// early it does not wait.
func TestPace(t *testing.T) {
	const requests, batch, size = 240, 1000, 200
	slot := 2 * lockstep.Called.Delta
	run := func(silent bool) (at map[parley.Tick]int, last parley.Tick) {
		opt := sim.Options{
			Protocol: New(Config{N: 4, M: 1, Batch: batch, Queue: 100 * batch}, lockstep.Called),
			Delay:    sim.Delay{Least: 10, Most: 10},
		}
		if silent {
			opt.Faulty = map[parley.ID]faulty.Behavior{3: faulty.Silent}
		}
		for range requests {
			opt.Requests = append(opt.Requests, sim.Request{At: 0, When: 1, Msg: problem.Request(make([]byte, size))})
		}
		at = make(map[parley.Tick]int)
		opt.Observe = func(op trace.Op, h parley.ExternalEvent) {
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

// The window grows if it was in use and this process in time, however long the slot took. It halves if the
// process was late, or too late for the others, once for all slots that were in flight.
func TestPaceWindow(t *testing.T) {
	const batch = 1 << 10
	when := lockstep.Schedule{Delta: 8000, Slack: 800, OnDemand: true}
	p := newPace(16_000, batch)
	now := parley.Tick(-1 << 30) // a clock may show less than 0
	for _, c := range []struct {
		what   string
		takes  parley.Tick
		late   parley.Tick // lateness of this process meanwhile
		held   bool
		lacks  bool // its batch did not count
		window int
	}{
		{"not in use", 10, 0, false, false, 8 * batch},
		{"early", 10, 0, true, false, 8*batch + batch/4},
		{"by the clock", 16_000, 100, true, false, 8*batch + batch/2},
		{"a liar is slow", 12_000, 0, true, false, 8*batch + 3*batch/4},
		{"late, for other reasons", 16_300, 300, false, false, 8*batch + 3*batch/4},
		{"late", 16_300, 300, true, false, 4*batch + 3*batch/8},
		{"late, from before", 32_000, 300, true, false, 4*batch + 3*batch/8},
		{"too late for the others", 16_000, 0, false, true, 2*batch + 3*batch/16},
		{"in time again", 15_000, 0, true, false, 2*batch + 3*batch/16 + batch/8},
	} {
		now += 16_500
		own := &part{size: batch, begun: now - c.takes, held: c.held}
		p.onWay, p.late = batch, c.late
		p.over(now, own, !c.lacks, when, batch)
		if p.window != c.window || p.onWay != 0 || p.took != c.takes {
			t.Fatalf("%s: a window of %d, want %d; %d under way, it took %d", c.what, p.window, c.window, p.onWay, p.took)
		}
	}
	for _, late := range []parley.Tick{0, 300} {
		want := mostWindow * batch
		if late > 0 {
			want = batch
		}
		for range 10_000 {
			now += 20_000
			p.late = late
			p.over(now, &part{size: batch, begun: now - 16_000, held: true}, true, when, batch)
		}
		if p.window != want {
			t.Errorf("always late by %d: a window of %d", late, p.window)
		}
	}
}

// A liar that opens all slots that may begin at once leaves none over which to spread what waits: that goes
// into those that exist, as far as the window has room.
func TestPaceInCrowdedSlots(t *testing.T) {
	const requests, batch, size, window = 60, 1000, 200, 128
	calls := faulty.Behavior{Name: "calls", Model: parley.OralByzantineFaults, Tell: func(_ *parley.Step, t *parley.Turn) []parley.Outgoing {
		out := slices.Clone(t.Honest)
		for _, one := range t.Honest {
			for one.Msg.Kind == lockstep.Frame && one.Msg.Seq == 0 && one.Msg.Value%window != 0 {
				one.Msg.Value++
				one.Msg.Body = nil
				out = append(out, one)
			}
		}
		return out
	}}
	opt := sim.Options{
		Protocol: New(Config{N: 4, M: 1, Window: window, Batch: batch, Queue: 100 * batch}, lockstep.Called),
		Delay:    sim.Delay{Least: 10, Most: 10}, Faulty: map[parley.ID]faulty.Behavior{3: calls},
		Requests: []sim.Request{{At: 3, Msg: problem.Request([]byte("first"))}},
	}
	for range requests {
		opt.Requests = append(opt.Requests, sim.Request{At: 0, When: 1, Msg: problem.Request(make([]byte, size))})
	}
	delivered, last := 0, parley.Tick(0)
	opt.Observe = func(op trace.Op, h parley.ExternalEvent) {
		if op == trace.Deliver && h.At == 1 && h.From == 0 {
			delivered, last = delivered+1, h.When
		}
	}
	s := sim.Run(opt)
	if age := 3 * lockstep.Called.Delta; delivered != requests || last > 3*age {
		t.Errorf("%d of %d are delivered, the last at %d: %v", delivered, requests, last, s.Stats.Refused)
	}
}

// flood is a run in which process 0 gets many requests at once, and process 1 a few now and then, while
// process 3 is silent.
func flood(requests int, change func(opt *sim.Options)) *sim.Sim {
	opt := sim.Options{
		Protocol: New(Config{N: 4, M: 1, Batch: 1000, Queue: 100_000}, lockstep.Called),
		Faulty:   map[parley.ID]faulty.Behavior{3: faulty.Silent}, Seed: 1,
	}
	for range requests {
		opt.Requests = append(opt.Requests, sim.Request{At: 0, When: 1, Msg: problem.Request(make([]byte, 200))})
	}
	for k := range 20 {
		light := sim.Request{At: 1, When: parley.Tick(1 + 1000*k), Msg: problem.Request([]byte{byte(k)})}
		opt.Requests = append(opt.Requests, light)
	}
	if change != nil {
		change(&opt)
	}
	return sim.Run(opt)
}

// However long messages take within the schedule, the window of a process with many requests grows, and that
// of others stays: none was late.
func TestPaceWithDelays(t *testing.T) {
	for seed := range uint64(20) {
		s := flood(300, func(opt *sim.Options) { opt.Seed, opt.Delay = seed, sim.Delay{Least: 1, Most: 900} })
		for id, least := range []int{firstWindow*1000 + 1, firstWindow * 1000} {
			p := s.Machine(parley.ID(id)).(*process)
			if p.total != 320 || p.pace.window < least || id == 1 && p.pace.window != least || p.pace.onWay != 0 {
				t.Fatalf("seed %d, process %d: %d delivered, %+v", seed, id, p.total, p.pace)
			}
		}
	}
}

// What was in flight when an era ended goes into slots of the next one, although the window was full.
func TestPaceOverEras(t *testing.T) {
	for seed := range uint64(20) {
		s := flood(300, func(opt *sim.Options) {
			opt.Faulty = nil
			opt.Seed = seed
			opt.Crashes = []sim.Crash{{At: 3, When: 5_000, Back: 10_000}}
		})
		p := s.Machine(0).(*process)
		if p.total != 320 || len(p.queue) != 0 || p.cur.number == 0 || p.pace.onWay != 0 {
			t.Fatalf("seed %d: %d delivered, %d wait, in era %d: %+v", seed, p.total, len(p.queue), p.cur.number, p.pace)
		}
	}
}
