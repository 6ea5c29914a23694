// Package dated gives synchronized clocks a date. There are n processes, and up to m of them may lie. Their logical
// clocks are synchronized. The processes agree on the date and time of day at which these clocks showed 0.
//
// The problem: the logical clocks of interactive convergence (package convergence) agree with each other, but not
// with real time. Each process also reads a wall clock, which may be wrong. All correct processes must get the same
// date for the logical time 0, and this date must lie between the dates that correct processes propose. The common
// time is this date plus the logical clock. The common time never goes back, even if a wall clock goes back.
//
// The model and the bound are the same as in package convergence: oral messages, n > 3m. A process that is down, or
// has no clock yet, is one of the m faulty processes. A machine also has the wall clock as an input (see
// Config.Date), besides messages, requests and timers.
//
// When the logical clocks begin together at 0, each process proposes the time of its wall clock. The processes
// agree on the vector of all proposals by interactive consistency, in rounds that the new logical clocks measure.
// All processes take the median of the vector as the date.
//
// A process that missed these rounds, or joins later, asks the others, and takes a date that m+1 of them report. If a
// process gets no date, or if fewer than n-m-1 others have the same date, it discards its clock. If the clocks begin
// again, a process that had the common time proposes the common time instead of its wall clock. Otherwise the common
// time would jump.
//
// Why it works: all correct processes decide on the same vector. It has at most m entries of faulty processes, and
// more than 2m entries of correct processes. So the median is the entry of a correct process, or it lies between two
// such entries. Among m+1 equal answers, at least one is from a correct process. The rounds work because they are
// long enough for the largest difference between correct logical clocks, Plan.Ever.
//
// The package does not promise that the date is right. If the wall clocks of correct processes are wrong, the date
// may be wrong, too.
//
// Source: the lecture (docs/explanation/sources.md), "Fault-Tolerant Clock Synchronization" and "Interactive
// Consistency by Running the Byzantine Agreement Protocol". The median is from Lamport and Melliar-Smith,
// "Synchronizing clocks in the presence of faults" (1985).
package dated

import (
	"cmp"
	"flag"
	"fmt"
	"iter"
	"slices"

	"parley"
	"parley/clock/convergence"
	"parley/lockstep"
)

// The messages, in addition to those of package convergence.
const (
	// dateFrame is a frame of the agreement on the date. It has the fields of lockstep.Frame.
	dateFrame parley.Kind = 0x10 + iota
	// dateQuery asks for the date. No field is used.
	dateQuery
	// dateReply is the answer. Value: the date, as a signed number.
	dateReply
)

// The indications, in addition to the deliveries of the clock.
const (
	// Beyond: the clock of another process was read, and differs by more than a correct clock can. Origin:
	// that process. Value: how far its clock is ahead, as a signed number.
	Beyond parley.Kind = parley.Indication + 0x3E + iota
	// Dated: the process has a date. Value: the date, as a signed number.
	Dated
)

// Config configures one system of clocks with a date. Times are in ticks.
type Config struct {
	// Config configures the clocks.
	convergence.Config
	// Round is the length of a round of the agreement on the date, in addition to the largest difference of
	// clocks; 0 means three round trips. It must exceed the largest delay and twice the Slack. Slack is how
	// late a process may act in a round; 0 means 1/5 of a round trip.
	Round, Slack parley.Tick
	// Date reads the wall clock of a process at a time of its hardware clock, in nanoseconds of Unix time. Date is
	// the only input of a machine that does not come in a Step. In a simulation it must depend only on its arguments,
	// so that the same seed makes the same run. On a real host it reads the computer's clock. nil means that the wall
	// clock of process i is i seconds ahead of the true time.
	Date func(self parley.ID, now parley.Tick) int64
	// Given replaces the synchronized clocks by clocks that show the true time (see the type given). It is for
	// an explorer, which has no drifting clocks.
	Given bool
}

// withDefaults fills in the defaults, for clocks with a plan.
func (c Config) withDefaults(plan *convergence.Plan) Config {
	c.Config = plan.Config
	c.Round, c.Slack = cmp.Or(c.Round, 3*plan.RoundTrip), cmp.Or(c.Slack, plan.RoundTrip/5)
	if c.Date == nil {
		c.Date = func(self parley.ID, now parley.Tick) int64 { return int64(now) + 1_000_000_000*int64(self) }
	}
	return c
}

// kinds holds the names of the messages, by kind.
var kinds = func() []string {
	list := append([]string{"", "READ", "TIME", "START"}, make([]string, dateFrame-convergence.Start-1)...)
	return append(list, "DATES", "DATE?", "DATE")
}()

// New returns the protocol. It panics if c.Plan fails.
func New(c Config) parley.Protocol {
	plan, err := c.Plan()
	if err != nil {
		panic("dated: " + err.Error())
	}
	given := c
	c = c.withDefaults(&plan)
	p := convergence.New(c.Config)
	m := newMachine(c, &plan, 0)
	frames := lockstep.Of(m.rounds, m.when)
	p.Name = "dated"
	p.Title = "clocks kept together, with an agreement on the date"
	p.Paper = "lecture, Fault-Tolerant Clock Synchronization and Interactive Consistency"
	p.Kinds = kinds
	p.New = func(self parley.ID) parley.Machine { return newMachine(c, &plan, self) }
	lying := lockstep.Of(agreement(c.N, c.M, encode(c.Date(0, 0)), encode(c.Date(0, 0)+hour)), m.when)
	p.Lies, p.Overhears = lies(p.Lies, lying.Lies), lying.Overhears
	p.Explain = explain(p.Explain, frames.Explain)
	p.Size = size(p.Size, frames.Size)
	p.Cost = nil // the cost of queries depends on how long the agreement takes
	if c.Given {
		p.Timing, p.Relies = parley.Synchronous, parley.ModelAssumptions{Delay: plan.Least + plan.Eps}
		p.Properties = slices.DeleteFunc(p.Properties, func(q parley.Property) bool { return q.Name != convergence.NoAlarm })
	}
	p.Properties = append(p.Properties, m.properties(c)...)
	p.Promises = promises(p.Promises, c.Given)
	p.Flags = parley.Flags(given, flags, New)
	return p
}

// flags declares the flags of the protocol.
func flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	clocks := convergence.Flags(fs, &c.Config)
	fs.Int64Var((*int64)(&c.Round), "date-round", int64(c.Round), "duration of a round of the agreement on the "+
		"date, in `ticks` "+
		"(0: three round trips)")
	fs.Int64Var((*int64)(&c.Slack), "date-slack", int64(c.Slack), "slack of a round of the agreement on the "+
		"date, in `ticks` "+
		"(0: 1/5 of a round trip)")
	fs.BoolVar(&c.Given, "given", c.Given, "use clocks that show the true time, to explore only the "+
		"agreement on the date")
	return func(c *Config, naming parley.Naming) error {
		for i, t := range []parley.Tick{c.Round, c.Slack} {
			if t < 0 || t > longest {
				flag := []string{"date-round", "date-slack"}[i]
				return parley.FlagErrorf(flag, "%d: allowed are 0, for the default, to %d", t, longest)
			}
		}
		if err := clocks(&c.Config, naming); err != nil {
			return err
		}
		plan, err := c.Plan()
		if full := c.withDefaults(&plan); err == nil && 2*full.Slack >= full.Round {
			err = parley.FlagErrorf("date-slack", "%d: allowed is less than half of a round of %d", full.Slack, full.Round)
		}
		return err
	}
}

// hour is how much a liar puts the date ahead.
const hour = 3_600_000_000_000

// longest is the longest round.
const longest = parley.Tick(1) << 44

// explain shows a frame as the messages in it, and a date as a number.
func explain(clocks, frames func(parley.Env, parley.Msg, func(parley.ID) string) iter.Seq[string]) func(
	parley.Env, parley.Msg, func(parley.ID) string) iter.Seq[string] {
	return func(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
		switch m.Kind {
		case dateFrame:
			m.Kind = lockstep.Frame
			return frames(e, m, name)
		case dateQuery:
			return slices.Values([]string{"DATE?"})
		case dateReply:
			return slices.Values([]string{fmt.Sprintf("DATE %d", int64(m.Value))})
		}
		return clocks(e, m, name)
	}
}

func size(clocks, frames func(parley.Env, parley.Msg) parley.Traffic) func(parley.Env, parley.Msg) parley.Traffic {
	return func(e parley.Env, m parley.Msg) parley.Traffic {
		switch m.Kind {
		case dateFrame:
			m.Kind = lockstep.Frame
			return frames(e, m)
		case dateQuery:
			return parley.Traffic{Messages: 1}
		case dateReply:
			return parley.Traffic{Messages: 1, Bits: 64}
		}
		return clocks(e, m)
	}
}
