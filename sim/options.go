package sim

import (
	"fmt"
	"slices"

	"parley"
	"parley/faulty"
	"parley/trace"
)

// Options configure one run.
type Options struct {
	Protocol parley.Protocol
	// Faulty holds the behavior of each faulty process. They form one coalition.
	Faulty map[parley.ID]faulty.Behavior
	Seed   uint64

	// Delay bounds the time that a message takes. The zero value means 1 to 900 ticks, which fits the rounds
	// of lockstep.Simulated.
	Delay Delay
	// Loss and Twice are the probabilities, 0 to 1, that a link loses or duplicates a message.
	Loss, Twice float64
	// FIFO makes each link deliver in the order of sending. Such links may lose messages, but duplicate none,
	// even if Twice is set here or in a rule.
	FIFO bool
	// Links are rules for some links and times: slow links, lossy links, partitions.
	Links []Link
	// Graph holds for each process the set of processes to which it has a link. Messages to other processes
	// are lost, and counted separately. An empty Graph means that every process has a link to every other.
	Graph []parley.Set
	// Heal is a tick. From then on links have no faults: no loss, no duplication, no rule. Messages that are
	// then still in flight on a slow link arrive at most Delay.Most later. 0 means never.
	Heal parley.Tick
	// Suspicions are delivered to processes as by a detector in the layer below.
	Suspicions []Suspicion
	// Detect, if not 0, turns on a failure detector that is never wrong. Every process that is up gets a
	// Suspicion of a crashed process Detect ticks after the crash, or later if messages of the crashed
	// process to it are still in flight. If the crashed process has restarted by then, it is not suspected. A
	// process that restarts gets Suspicions of all processes that are down, with the same delay.
	Detect parley.Tick
	// Clocks are the clocks that do not show true time.
	Clocks []Clock
	Pauses []Pause

	Requests []Request
	// More, if not nil, returns further requests one by one, in order of time, until it returns false. So a
	// long run needs no long list. When a request is due, the simulator calls More for the next one.
	More    func() (Request, bool)
	Crashes []Crash
	// Until is the time at which the run ends. With 0 the run continues while anything is due. Events that
	// would be due at or after the greatest Tick never happen.
	Until parley.Tick
	// Steps is the largest number of clauses in a run. A run with more clauses is stopped: see Stats.OutOfSteps. 0
	// means 1<<40.
	Steps uint64

	// Promised says what the protocol may assume about links and clocks. The zero value means Protocol.Relies. If
	// Promised.Delay is 0, it means Options.Delay.Most, even if Options.Links has other delays. Anything worse
	// appears in the conditions of the run.
	Promised parley.ModelAssumptions

	Signer Signer     // nil: Ideal(Seed)
	Log    *trace.Log // nil: no trace
	// Measure counts the traffic that is sent, by the protocol's Size.
	Measure bool
	// Observe, if not nil, is called for each request, delivery, indication and restart as it happens, with
	// trace.Request, trace.Deliver, trace.Indicate or trace.Restart. The lists of the History then stay empty,
	// so that a long run does not keep them in memory.
	Observe func(op trace.Op, h parley.ExternalEvent)
	// Between, if not nil, is called after each event. It may inspect the run and replace machines. An event is one
	// clause of one process. There is one exception: if a run has a fixed delay, no other faults of links, no Pauses,
	// no Detect, and no Log, a message to all arrives at all processes in one event.
	Between func(s *Sim)
}

// Delay bounds message delays, in ticks, including both ends.
type Delay struct{ Least, Most parley.Tick }

// Request is a request to a process at the time When, which must not be negative.
type Request struct {
	At   parley.ID
	When parley.Tick
	Msg  parley.Msg
}

// Suspicion notifies process At, at tick When, that process Of is suspected to have crashed: its machine
// receives, from itself, a message of kind Suspect with Origin Of. A process that is down gets nothing.
type Suspicion struct {
	At, Of parley.ID
	When   parley.Tick
}

// Stats counts the events of a run, and every fault by its kind.
type Stats struct {
	Steps      uint64 // clauses run
	OutOfSteps bool   // Options.Steps ended the run although more was due
	Sends      uint64 // one for each receiver
	Deliveries uint64 // messages received by machines
	Lost       uint64 // by chance
	Doubled    uint64 // messages that arrived twice
	Overtaken  uint64 // copies that arrived before an earlier message of their link
	Late       uint64 // copies that took longer than Options.Promised
	Cut        uint64 // lost on links with Loss 1
	NoEdge     uint64 // lost where there is no link
	Missed     uint64 // arrived at a process that was down
	Crashes    uint64
	Restarts   uint64
	LostDisks  uint64 // restarts without the durable state
	Pauses     uint64
	// Suspicions counts the suspicions that processes were notified of, or that they indicated. FalseSuspicions
	// counts suspicions by a process outside the coalition about a correct process that was up.
	Suspicions, FalseSuspicions uint64
	Refused                     map[string]uint64 // input that machines refused, by reason
	// FromFaulty counts the messages of faulty processes that correct processes received. RefusedFaulty
	// counts the messages among them that were refused at least in part, at most one for each sender and
	// step.
	FromFaulty, RefusedFaulty uint64
	// Sent holds the traffic of correct processes by round, in the protocol's own measure.
	Sent []parley.Traffic
	// Signs and Verifies count the signatures made and checked.
	Signs, Verifies uint64
}

// checked returns the options with defaults filled in. It panics if they are invalid.
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

// WrongClock reports whether a clock has a greater offset or drift than Promised allows. The clocks of
// processes in free do not count.
func (o *Options) WrongClock(free parley.Set) bool {
	off := func(x, bound int64) bool { return x > bound || x < -bound }
	return slices.ContainsFunc(o.Clocks, func(c Clock) bool {
		told := o.Promised
		return !free.Has(c.At) && (off(int64(c.Offset), int64(told.Offset)) || off(c.Drift, told.Drift))
	})
}
