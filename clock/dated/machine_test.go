package dated

import (
	"bytes"
	"testing"

	"parley"
	"parley/clock/convergence"
	"parley/faulty"
	"parley/sim"
)

const second = 1_000_000_000

// steady returns a wall clock that has stopped, at a time of each process.
func steady(at func(self parley.ID) int64) func(parley.ID, parley.Tick) int64 {
	return func(self parley.ID, _ parley.Tick) int64 { return at(self) }
}

// A process whose clock begins again proposes the common time that it had, however its wall clock was set in
// the meantime. A process that never had the common time proposes its wall clock.
func TestClocksBeginAgainWithTheTime(t *testing.T) {
	const hardware = int64(1_000_000)
	c := Config{
		Config: convergence.Config{N: 4, M: 1, Eps: 1_000_000, Period: second, Begin: convergence.Either, Readings: 5, Late: 2e7},
		Round:  1e8, Slack: 2e7, Date: steady(func(parley.ID) int64 { return 5 * hour }),
	}
	for had, want := range map[bool]int64{false: 5 * hour, true: 9*hour + hardware} {
		d := New(c).New(0).(*machine)
		s := &parley.Step{Self: 0, N: 4, Now: parley.Tick(hardware)}
		d.Start(s)
		if had {
			d.settle(9 * hour)
			d.note(s) // the logical clock still equals the hardware clock
		}
		s.Effects = nil
		d.enter(s, true)
		logical, _ := convergence.Now(d.clock, s.Now)
		s.Now += max(0, d.one.Deadline()-logical)
		d.Timeout(s, dateTimer)
		date := encode(want - int64(logical))
		said := false
		for _, e := range s.Effects {
			said = said || e.Op == parley.OpSend && bytes.Contains(e.Msg.Body, date)
		}
		if !said {
			t.Errorf("had the time: %v: it does not say that it is %v", had, want)
		}
	}
}

// Replies about earlier clocks do not date the clocks that have just begun.
func TestAnswersOfOldClocks(t *testing.T) {
	d := New(Config{Config: convergence.Config{N: 4, M: 1}}).New(0).(*machine)
	s := &parley.Step{Self: 0, N: 4}
	d.Start(s)
	d.enter(s, false)
	d.hear(s, 1, parley.Msg{Kind: dateReply, Value: 5})
	d.enter(s, true)
	d.hear(s, 2, parley.Msg{Kind: dateReply, Value: 5})
	d.hear(s, 3, parley.Msg{Kind: dateReply, Value: 5})
	if d.dated {
		t.Errorf("it has the date %d", d.date)
	}
	d.ask(s)
	d.hear(s, 2, parley.Msg{Kind: dateReply, Value: 6})
	d.hear(s, 3, parley.Msg{Kind: dateReply, Value: 6})
	if !d.dated || d.date != 6 {
		t.Errorf("after two answers that it asked for it has the date %v, %d", d.dated, d.date)
	}
}

// A process that joins asks for the date at once, and takes the one in m+1 equal replies.
func TestJoinerAsks(t *testing.T) {
	d := New(Config{Config: convergence.Config{N: 4, M: 1}}).New(0).(*machine)
	s := &parley.Step{Self: 0, N: 4}
	d.Start(s)
	s.Effects = nil
	d.enter(s, false)
	if len(s.Effects) != 1 || s.Effects[0].Msg.Kind != dateQuery || s.Effects[0].To != parley.All {
		t.Fatalf("it asks for %v", s.Effects)
	}
	for from, date := range map[parley.ID]uint64{1: 5, 2: 6} {
		if d.hear(s, from, parley.Msg{Kind: dateReply, Value: date}); d.dated {
			t.Fatal("one answer is enough")
		}
	}
	if d.hear(s, 3, parley.Msg{Kind: dateReply, Value: 6}); !d.dated || d.date != 6 {
		t.Errorf("it has the date %v, %d", d.dated, d.date)
	}
}

// fiveClocks returns the clocks of five processes, with stopped wall clocks.
func fiveClocks(t *testing.T, change func(c *Config)) (plan convergence.Plan, p parley.Protocol) {
	c := Config{
		Config: convergence.Config{N: 5, M: 1, Begin: convergence.Either},
		Date:   steady(func(parley.ID) int64 { return 77 }),
	}
	plan, err := c.Plan()
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&c)
	}
	p = New(c)
	p.Properties = nil
	return plan, p
}

// Four of five processes give up their clocks one after the other, in less time than it takes until a process
// must repeat its START: all four take part in the agreement on the date, although only the first three begin
// at once. So there is a date although the fifth takes no part.
func TestLateBeginnerAgreesOnDate(t *testing.T) {
	plan, p := fiveClocks(t, nil)
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
			if c := run.Machine(id).(*machine); !c.dated || c.date != run.Machine(0).(*machine).date {
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

// More processes than may be faulty are disconnected while five processes agree on the date, so none has a
// date. All notice in the second resynchronization, and begin again.
func TestNoDate(t *testing.T) {
	plan, p := fiveClocks(t, nil)
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
		if c := run.Machine(id).(*machine); !c.dated {
			t.Errorf("process %d has no date", id)
		}
	}
}

// numbered is a wall clock that has stopped at the number of its process, in units of 1e15 ns.
var numbered = steady(func(self parley.ID) int64 { return int64(self) * 1e15 })

// lateDates returns a run in which five processes agree on the date while links lose messages. when is the
// beginning of the first round.
func lateDates(t *testing.T, periods parley.Tick, links func(plan convergence.Plan, when parley.Tick) []sim.Link) *sim.Sim {
	plan, p := fiveClocks(t, func(c *Config) { c.Date = numbered })
	return sim.Run(sim.Options{
		Protocol: p, Until: periods * plan.Period, Delay: sim.Delay{Least: plan.Least, Most: plan.Least + plan.Eps},
		Links: links(plan, p.New(0).(*machine).when.Begin),
	})
}

// Messages of two others come too late for one process, so that it alone has another vector and another
// median. It sees that the others have another date, and gives up its clock to join them; the others keep
// theirs.
func TestAnotherDate(t *testing.T) {
	run := lateDates(t, 7, func(plan convergence.Plan, when parley.Tick) []sim.Link {
		to, since := parley.SetOf(4), when-plan.RoundTrip
		return []sim.Link{
			{From: parley.SetOf(0), To: to, Since: since, Until: when + 10*plan.RoundTrip, Loss: 1},
			{From: parley.SetOf(2), To: to, Since: since, Until: when + plan.RoundTrip/4, Loss: 1},
		}
	})
	for id := range parley.ID(5) {
		if c := run.Machine(id).(*machine); !c.dated || c.date != run.Machine(1).(*machine).date {
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

// One process's date comes too late for the others: it takes the date that they have.
func TestLateDate(t *testing.T) {
	run := lateDates(t, 1, func(plan convergence.Plan, when parley.Tick) []sim.Link {
		return []sim.Link{{From: parley.SetOf(4), Since: when - plan.RoundTrip, Until: when + plan.RoundTrip, Loss: 1}}
	})
	for id := range parley.ID(5) {
		if c := run.Machine(id).(*machine); !c.dated || c.date/1e15 != 1 {
			t.Errorf("process %d has the date %v, %d", id, c.dated, c.date)
		}
	}
}

// Rounds of the agreement on the date may take longer than two periods without making a process begin again.
func TestDateTakesLong(t *testing.T) {
	period, _ := fiveClocks(t, nil)
	plan, p := fiveClocks(t, func(c *Config) { c.Round = period.Period })
	run := sim.Run(sim.Options{
		Protocol: p, Until: 6 * plan.Period, Delay: sim.Delay{Least: plan.Least, Most: plan.Least + plan.Eps},
		Faulty: map[parley.ID]faulty.Behavior{4: faulty.Silent},
	})
	for id := range parley.ID(4) {
		if c := run.Machine(id).(*machine); !c.dated {
			t.Errorf("process %d has no date", id)
		}
	}
}

// Clocks that are read with a large error may differ by as much as a round: the agreement on the date has room
// for that.
func TestDateOfClocksApart(t *testing.T) {
	c := Config{
		Config: convergence.Config{
			N: 4, M: 1, Eps: second / 10, Period: 32 * second, Begin: convergence.Either, Readings: 5, Late: 2e7,
		},
		Round: 1e8, Slack: 2e7, Date: numbered,
	}
	plan, err := c.Plan()
	if err != nil {
		t.Fatal(err)
	}
	p := New(c)
	p.Properties = nil
	for seed := range uint64(60) {
		run := sim.Run(sim.Options{
			Protocol: p, Seed: seed, Until: plan.Period, Delay: sim.Delay{Least: 1, Most: 1 + plan.Eps},
		})
		for id := range parley.ID(4) {
			if c := run.Machine(id).(*machine); !c.dated || c.date != run.Machine(0).(*machine).date {
				t.Errorf("seed %d: process %d has the date %v, %d", seed, id, c.dated, c.date)
			}
		}
	}
}
