package cluster

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"parley"
	"parley/clock/convergence"
	"parley/faulty"
	"parley/sim"
)

// A node whose clock begins anew takes the common time that it had for the date, however its
// machine's clock was set meanwhile; and one that never had it takes that of the machine.
func TestClocksBeginAnewWithTheTime(t *testing.T) {
	t.Parallel()
	const hour, hardware = int64(time.Hour), int64(time.Millisecond)
	plan, err := Config{Members: make([]Member, 4)}.filled().plan()
	if err != nil {
		t.Fatal(err)
	}
	for had, want := range map[bool]int64{false: 5 * hour, true: 9*hour + hardware} {
		c := newClockwork(plan, 0, 1e8, 2e7, func() int64 { return 5 * hour })
		s := &parley.Step{Self: 0, N: 4, Now: parley.Tick(hardware)}
		c.Start(s)
		if had {
			c.settle(9 * hour)
			c.adjusts(s) // the logical clock shows nothing yet but the hardware clock
		}
		s.Effects = nil
		c.enters(s, true)
		logical, _ := convergence.Now(c.clock, s.Now)
		s.Now += max(0, c.one.Deadline()-logical)
		c.Timeout(s, dateTimer)
		date := binary.BigEndian.AppendUint64(nil, uint64(want-int64(logical)))
		told := false
		for _, e := range s.Effects {
			told = told || e.Op == parley.OpSend && bytes.Contains(e.Msg.Body, date)
		}
		if !told {
			t.Errorf("had the time: %v: it does not say that it is %v", had, time.Duration(want))
		}
	}
}

// fiveClocks are the clocks of five nodes, which may be simulated.
func fiveClocks(t *testing.T) (plan convergence.Plan, p parley.Protocol) {
	plan, err := convergence.Config{N: 5, M: 1, Begin: convergence.Either}.Plan()
	if err != nil {
		t.Fatal(err)
	}
	p = newClockwork(plan, 0, 3*plan.RoundTrip, plan.RoundTrip/5, func() int64 { return 77 }).described()
	p.Properties = nil // of clocks alone
	return plan, p
}

// Four of five nodes give up their clocks one after the other, in less time than those who have
// just said START need to say it again: all four are in the agreement on the date, though only
// the first three begin at once, and so there is a date although the fifth is not in it.
func TestWhoBeginsLateAgreesOnTheDate(t *testing.T) {
	t.Parallel()
	plan, p := fiveClocks(t)
	for share := range parley.Tick(20) {
		anew := 3*plan.Period + plan.Period/3
		opt := sim.Options{
			Protocol: p, Seed: uint64(share), Until: anew + 5*plan.Period/8, // before the fifth sees it
			Delay: sim.Delay{Least: plan.Least, Most: plan.Least + plan.Eps},
		}
		for id := range parley.ID(4) {
			opt.Requests = append(opt.Requests, sim.Request{
				At: id, When: anew + parley.Tick(id/3)*share*plan.Period/80, Msg: parley.Msg{Kind: convergence.Anew},
			})
		}
		run := sim.Run(opt)
		for id := range parley.ID(4) {
			if c := run.Machine(id).(*clockwork); !c.dated || c.date != run.Machine(0).(*clockwork).date {
				t.Errorf("%d eightieths of a period apart: process %d has the date %v, %d", share, id, c.dated, c.date)
			}
		}
		leaves := 0
		for _, d := range run.History.Deliveries {
			if d.Msg.Kind == convergence.Leaves {
				leaves++
			}
		}
		if leaves != 4 {
			t.Errorf("%d eightieths of a period apart: %d clocks are given up", share, leaves)
		}
	}
}

// More are cut off than may be faulty while five nodes agree on the date: nobody has one. All see
// that in the second resynchronization, and begin anew.
func TestNoDate(t *testing.T) {
	t.Parallel()
	plan, p := fiveClocks(t)
	anew := 3*plan.Period + plan.Period/3
	cut := sim.Link{From: parley.SetOf(1, 2), Since: anew + plan.Period/8, Until: anew + 3*plan.Period/4, Loss: 1}
	back := cut
	back.From, back.To = cut.To, cut.From
	opt := sim.Options{
		Protocol: p, Until: anew + 11*plan.Period/4, Links: []sim.Link{cut, back},
		Delay: sim.Delay{Least: plan.Least, Most: plan.Least + plan.Eps},
	}
	for id := range parley.ID(5) {
		opt.Requests = append(opt.Requests, sim.Request{At: id, When: anew, Msg: parley.Msg{Kind: convergence.Anew}})
	}
	run := sim.Run(opt)
	leaves := 0
	for _, d := range run.History.Deliveries {
		if d.Msg.Kind == convergence.Leaves {
			leaves++
		}
	}
	if leaves != 10 {
		t.Errorf("clocks are given up %d times, and were to be twice by each", leaves)
	}
	for id := range parley.ID(5) {
		if c := run.Machine(id).(*clockwork); !c.dated {
			t.Errorf("process %d has no date", id)
		}
	}
}

// lateDates is a run in which five nodes agree on the date while links lose messages; when is the
// beginning of the first round. Each takes its own number for the date, in units of 1e15 ns.
func lateDates(t *testing.T, periods parley.Tick, links func(plan convergence.Plan, when parley.Tick) []sim.Link) *sim.Sim {
	plan, p := fiveClocks(t)
	made := func(self parley.ID) *clockwork {
		return newClockwork(plan, self, 3*plan.RoundTrip, plan.RoundTrip/5, func() int64 { return int64(self) * 1e15 })
	}
	p.New = func(self parley.ID) parley.Machine { return made(self) }
	return sim.Run(sim.Options{
		Protocol: p, Until: periods * plan.Period, Delay: sim.Delay{Least: plan.Least, Most: plan.Least + plan.Eps},
		Links: links(plan, made(0).when.Begin),
	})
}

// What two others say comes too late for one node, so that it alone has another vector, and
// another median. It sees that the others have another date, and comes right by itself:
// its clock begins anew, and the others' go on.
func TestAnotherDate(t *testing.T) {
	t.Parallel()
	run := lateDates(t, 7, func(plan convergence.Plan, when parley.Tick) []sim.Link {
		to, since := parley.SetOf(4), when-plan.RoundTrip
		return []sim.Link{
			{From: parley.SetOf(0), To: to, Since: since, Until: when + 10*plan.RoundTrip, Loss: 1},
			{From: parley.SetOf(2), To: to, Since: since, Until: when + plan.RoundTrip/4, Loss: 1},
		}
	})
	for id := range parley.ID(5) {
		if c := run.Machine(id).(*clockwork); !c.dated || c.date != run.Machine(1).(*clockwork).date {
			t.Errorf("process %d has the date %v, %d", id, c.dated, c.date)
		}
	}
	leaves := 0
	for _, d := range run.History.Deliveries {
		if d.Msg.Kind == convergence.Leaves {
			leaves++
		}
	}
	if leaves != 1 {
		t.Errorf("%d clocks are given up", leaves)
	}
}

// One node's word on the date comes too late for the others: it goes by the date that they have.
func TestLateDate(t *testing.T) {
	t.Parallel()
	run := lateDates(t, 1, func(plan convergence.Plan, when parley.Tick) []sim.Link {
		return []sim.Link{{From: parley.SetOf(4), Since: when - plan.RoundTrip, Until: when + plan.RoundTrip, Loss: 1}}
	})
	for id := range parley.ID(5) {
		if c := run.Machine(id).(*clockwork); !c.dated || c.date/1e15 != 1 {
			t.Errorf("process %d has the date %v, %d", id, c.dated, c.date)
		}
	}
}

// Rounds of the agreement on the date may take longer than two periods, and nobody begins anew
// for that.
func TestDateTakesLong(t *testing.T) {
	t.Parallel()
	plan, p := fiveClocks(t)
	p.New = func(self parley.ID) parley.Machine {
		return newClockwork(plan, self, plan.Period, plan.RoundTrip/5, func() int64 { return 77 })
	}
	run := sim.Run(sim.Options{
		Protocol: p, Until: 6 * plan.Period, Delay: sim.Delay{Least: plan.Least, Most: plan.Least + plan.Eps},
		Faulty: map[parley.ID]faulty.Behaviour{4: faulty.Silent},
	})
	for id := range parley.ID(4) {
		if c := run.Machine(id).(*clockwork); !c.dated {
			t.Errorf("process %d has no date", id)
		}
	}
}

// Clocks that are read with a large error may be as far apart as a round of agreements is long:
// the agreement on the date has room for that.
func TestDateOfClocksApart(t *testing.T) {
	t.Parallel()
	c := Config{Members: make([]Member, 4), Clocks: ClockConfig{Error: 100 * time.Millisecond}}.filled()
	plan, err := c.plan()
	if err != nil {
		t.Fatal(err)
	}
	made := func(self parley.ID) *clockwork {
		return newClockwork(plan, self, parley.Tick(c.Round), parley.Tick(c.slack()), func() int64 { return int64(self) * 1e15 })
	}
	p := made(0).described()
	p.Properties, p.New = nil, func(self parley.ID) parley.Machine { return made(self) }
	for seed := range uint64(60) {
		run := sim.Run(sim.Options{
			Protocol: p, Seed: seed, Until: plan.Period, Delay: sim.Delay{Least: 1, Most: 1 + plan.Eps},
		})
		for id := range parley.ID(4) {
			if c := run.Machine(id).(*clockwork); !c.dated || c.date != run.Machine(0).(*clockwork).date {
				t.Errorf("seed %d: process %d has the date %v, %d", seed, id, c.dated, c.date)
			}
		}
	}
}
