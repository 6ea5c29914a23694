package sim

import (
	"fmt"
	"slices"

	"parley"
	"parley/faulty"
	"parley/trace"
)

// Options describe one run.
type Options struct {
	Protocol parley.Protocol
	// Faulty processes and how they behave. They form one coalition.
	Faulty map[parley.ID]faulty.Behavior
	Seed   uint64

	// Delay bounds the time a message takes; by default 1 to 900 ticks, which
	// fits the rounds of lockstep.Simulated.
	Delay Delay
	// Loss and Twice are the chances, 0 to 1, that a link loses or doubles a message.
	Loss, Twice float64
	// FIFO makes each link deliver in the order in which it was sent on. Such links
	// double nothing, whatever Twice says, here or in a rule; they may lose.
	FIFO bool
	// Links are rules for some links and times: slow ones, worse ones, partitions.
	Links []Link
	// Graph has a set a process: whom it has a link to. What is sent to others is
	// lost, and counted apart. Empty: everybody has a link to everybody.
	Graph []parley.Set
	// Heal is the tick from which on links do no harm: no loss, no doubling, no
	// rule, and what a slow link still holds arrives at most Delay.Most later. 0: never.
	Heal parley.Tick
	// Suspicions are told to processes as by a detector beneath them.
	Suspicions []Suspicion
	// Detect, if not 0, is an accurate detector: every process that is up is told, as by a
	// Suspicion, of one that crashed, at the earliest so many ticks after the crash, and
	// not before all that it had sent there has arrived. One that is back by then is
	// not told of; one that comes back is told who is down, as many ticks later.
	Detect parley.Tick
	// Clocks are those that do not show the true time.
	Clocks []Clock
	Pauses []Pause

	Requests []Request
	// More, if not nil, gives further requests one by one, in order of time, until it
	// says that there are none: a run may be long without a long list. It is asked for
	// the next one when the last one is due.
	More    func() (Request, bool)
	Crashes []Crash
	// Until ends the run at a time; 0 lets it go on while anything is due. What would be
	// due at the end of time, the greatest Tick, or beyond it, is not.
	Until parley.Tick
	// Steps is the budget of a run that may not end by itself, nor come to the time
	// Until: how many clauses run at most. 0 stands for 1<<40.
	Steps uint64

	// Promised is what the protocol was told of links and clocks, by default what it
	// relies on itself; a delay that is 0 is that of these Options without any rule.
	// What is worse shows among the assumptions of the run.
	Promised parley.ModelAssumptions

	Signer Signer     // by default ideal tokens
	Log    *trace.Log // nil: no trace
	// Measure counts what is sent by the protocol's own Size.
	Measure bool
	// Observe, if not nil, is told of each request, delivery, indication and restart as
	// it happens, of trace.Request, trace.Deliver, trace.Indicate or trace.Restart. The
	// lists of the History then stay empty, so that a long run holds nothing of them.
	Observe func(op trace.Op, h parley.ExternalEvent)
	// Between, if not nil, is called after each event, to look and to replace
	// machines. An event is one clause of one process; but with a fixed delay, no
	// loss and no Log a message to all arrives at all in one event, process by
	// process.
	Between func(s *Sim)
}

// Delay bounds message delays, in ticks, both ends included.
type Delay struct{ Least, Most parley.Tick }

// Request is what a process is asked from above, and when: not before 0.
type Request struct {
	At   parley.ID
	When parley.Tick
	Msg  parley.Msg
}

// Suspicion tells process At, at the tick When, that process Of is suspected to
// have failed: its machine receives, from itself, a message of kind Suspect with
// Origin Of. A process that is down is told nothing.
type Suspicion struct {
	At, Of parley.ID
	When   parley.Tick
}

// Stats counts what happened in a run, and every fault by its kind.
type Stats struct {
	Steps      uint64 // clauses run
	OutOfSteps bool   // Options.Steps ended the run: more was due
	Sends      uint64 // one a receiver
	Deliveries uint64 // messages received by machines
	Lost       uint64 // by chance
	Doubled    uint64 // messages that came twice
	Overtaken  uint64 // copies that came before what was sent earlier on their link
	Late       uint64 // copies that took longer than was promised
	Cut        uint64 // lost on links of which all is lost
	NoEdge     uint64 // lost where there is no link
	Missed     uint64 // arrived at a process that was down
	Crashes    uint64
	Restarts   uint64
	LostDisks  uint64 // restarts without what had been durable
	Pauses     uint64
	// Suspicions are those that processes were told of or indicated, and
	// FalseSuspicions those of them that a process outside the coalition had of a
	// correct process that was up.
	Suspicions, FalseSuspicions uint64
	Refused                     map[string]uint64 // input that machines ignored, by reason
	// FromFaulty counts the messages of faulty processes that correct ones
	// received, and RefusedFaulty those of them that were refused, or something in
	// them: however much that is, a step refuses one message of a sender.
	FromFaulty, RefusedFaulty uint64
	// Sent is what correct processes sent, by round, in the protocol's own measure.
	Sent []parley.Traffic
	// Signs and Verifies count signatures made and checked.
	Signs, Verifies uint64
}

// checked returns the options with what was left out filled in.
func checked(opt Options) Options {
	p := opt.Protocol
	if p.N < 1 || p.N > parley.MaxProcesses {
		panic(fmt.Sprintf("sim: n = %d", p.N))
	}
	if opt.Delay == (Delay{}) {
		opt.Delay = Delay{1, 900}
	}
	checkChances("of links", opt.Delay, opt.Loss, opt.Twice)
	if opt.Promised == (parley.ModelAssumptions{}) {
		opt.Promised = p.Relies
	}
	if opt.Promised.Delay == 0 {
		opt.Promised.Delay = opt.Delay.Most
	}
	if len(opt.Graph) > 0 && len(opt.Graph) != p.N {
		panic(fmt.Sprintf("sim: a graph of %d processes for %d", len(opt.Graph), p.N))
	}
	for _, r := range opt.Requests {
		if r.When < 0 {
			panic(fmt.Sprintf("sim: process %d is asked at time %d, before the run begins", r.At, r.When))
		}
	}
	if opt.Steps == 0 {
		opt.Steps = 1 << 40
	}
	if opt.Signer == nil {
		opt.Signer = Ideal(opt.Seed)
	}
	return opt
}

// WrongClock tells whether a clock is further off, or drifts more, than promised, but for those
// of processes that may do what they like.
func (o *Options) WrongClock(free parley.Set) bool {
	off := func(x, bound int64) bool { return x > bound || x < -bound }
	return slices.ContainsFunc(o.Clocks, func(c Clock) bool {
		told := o.Promised
		return !free.Has(c.At) && (off(int64(c.Offset), int64(told.Offset)) || off(c.Drift, told.Drift))
	})
}
