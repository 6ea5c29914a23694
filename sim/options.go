package sim

import (
	"fmt"

	"parley"
	"parley/faulty"
	"parley/trace"
)

// Options describe one run.
type Options struct {
	Protocol parley.Protocol
	// Faulty processes and how they behave. They form one coalition.
	Faulty map[parley.ID]faulty.Behaviour
	Seed   uint64

	// Delay bounds the time a message takes; by default 1 to 900 ticks, which
	// fits the rounds of lockstep.Simulated.
	Delay Delay
	// Rush is how long the coalition waits to hear the others; by default 950
	// ticks for a synchronous protocol and 0 for others.
	Rush parley.Tick
	// Loss and Twice are the chances in 1 that a link loses or doubles a message.
	Loss, Twice float64

	Requests []Request
	Crashes  []Crash
	// Until ends the run at a time; 0 lets it go on while anything is due.
	Until parley.Tick
	// Steps is the budget of a run that may not end by itself, nor come to the time
	// Until: how many clauses run at most. 0 stands for 1<<40.
	Steps uint64

	Signer Signer     // by default ideal tokens
	Log    *trace.Log // nil: no trace
	// Measure counts what is sent by the protocol's own Size.
	Measure bool
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

// Crash stops a process in its Step-th step from its start on, counting from 1, after
// the first Effects effects of that step: records become durable before
// anything else happens, so a crash with Effects 0 comes before durability. A
// send to all is one effect for each receiver.
type Crash struct {
	At      parley.ID
	Step    int
	Effects int
	// Back is how long after the crash the process restarts; 0: never.
	Back parley.Tick
	// LostDisk restarts it without its log.
	LostDisk bool
}

// Stats counts what happened in a run.
type Stats struct {
	Steps      uint64 // clauses run
	OutOfSteps bool   // Options.Steps ended the run: more was due
	Sends      uint64 // one a receiver
	Deliveries uint64 // messages received by machines
	Lost       uint64
	Crashes    uint64
	Refused    map[string]uint64 // input that machines ignored, by reason
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
	if opt.Delay.Least < 1 || opt.Delay.Most < opt.Delay.Least {
		panic("sim: delays are at least one tick")
	}
	for _, r := range opt.Requests {
		if r.When < 0 {
			panic(fmt.Sprintf("sim: process %d is asked at time %d, before the run begins", r.At, r.When))
		}
	}
	if opt.Rush == 0 && p.Timing == parley.Synchronous {
		opt.Rush = 950
	}
	if opt.Steps == 0 {
		opt.Steps = 1 << 40
	}
	if opt.Signer == nil {
		opt.Signer = Ideal(opt.Seed)
	}
	return opt
}
