package twophase

import (
	"cmp"
	"flag"
	"fmt"

	"parley"
	"parley/commit/problem"
)

// Config configures one transaction.
type Config struct {
	// N is the number of processes, including the coordinator.
	N int
	// Delta is the longest time that a message takes, including the receiver's time to act on it, in ticks of a
	// process's clock. If a message takes longer, transactions may abort unnecessarily, but nothing worse happens. 0
	// means 1000.
	Delta parley.Tick
	// Votes is how long the coordinator waits for votes. 0 means 2 Delta, which is enough for processes that
	// have their votes.
	Votes parley.Tick
}

// Check returns what is wrong with c, or nil.
func (c Config) Check() error {
	if c.Votes < 0 || c.Votes > longest {
		return fmt.Errorf("%d ticks for votes: allowed are 1 to %d", c.Votes, longest)
	}
	return cmp.Or(parley.CheckN(c.N, 2), problem.CheckDelta(c.Delta, longest))
}

const (
	longest = parley.Tick(1) << 50 // leaves room for many Deltas in a Tick
	span    = 40                   // length of a run in Deltas: a blocked process asks forever
)

// New returns the protocol. It panics if c.Check fails.
func New(c Config) parley.Protocol {
	if err := c.Check(); err != nil {
		panic("twophase: " + err.Error())
	}
	c.Delta = cmp.Or(c.Delta, 1000)
	c.Votes = cmp.Or(c.Votes, 2*c.Delta)
	return parley.Protocol{
		Name:  "twophase",
		Title: "atomic commitment in two phases, which may block",
		Paper: "Bernstein, Hadzilacos, Goodman 1987, section 7.4; " +
			"presumed abort: Mohan, Lindsay, Obermarck 1986",
		Timing:     parley.Asynchronous,
		Relies:     parley.ModelAssumptions{Delay: c.Delta},
		Span:       span * c.Delta,
		Faults:     parley.CrashFaults,
		Kinds:      []string{"", "VOTE-REQ", "VOTE", "DECISION", "ACK", "ASK", "ANSWER"},
		N:          c.N,
		M:          c.N - 1,
		Proposers:  parley.Everyone(c.N),
		New:        func(self parley.ID) parley.Machine { return newProcess(c, self) },
		Properties: problem.Uniform(parley.Everyone(c.N)),
		Promises:   promises,
		Cost:       Cost,
		Size:       size,
		Explain:    words.Explain,
		Flags:      parley.Flags(c, flags, New),
		Progress:   problem.Progress,
	}
}

func newProcess(c Config, self parley.ID) *process { return &process{c: c, self: self} }

func flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	fs.IntVar(&c.N, "n", c.N, "number of `processes`, with the coordinator")
	check := problem.DeltaFlag(fs, &c.Delta)
	return func(c *Config, _ parley.Naming) error {
		c.Votes = 0 // derived from delta
		return check(c.Delta, c.Check())
	}
}

// Terminate is the rule of the cooperative termination protocol: it returns the outcome that follows from the given
// states. The processes in these states can reach each other, but not the coordinator. If one has committed, all must
// commit. If one has not voted yes, or has aborted, all must abort. If all are uncertain, nothing follows, because
// the coordinator may have sent its decision to an unreachable process. Two-phase commit has no precommitted state,
// so this state counts as uncertain.
func Terminate(states []problem.State) problem.Outcome {
	out := problem.Undecided
	for _, s := range states {
		switch s {
		case problem.Committed:
			return problem.Commit
		case problem.Aborted, problem.Initial:
			out = problem.Abort
		}
	}
	return out
}

// Cost counts a transaction for which all vote yes, if nothing fails: a request, a vote and a decision for each
// participant. If a participant votes no, the cost is lower. Acknowledgements do not count, because no process waits
// for them, and they can be sent with other messages.
func Cost(n, _ int) parley.Cost { return problem.Phases(3, n) }

func size(_ parley.Env, m parley.Msg) parley.Traffic {
	if m.Kind == Ack {
		return parley.Traffic{}
	}
	return parley.Traffic{Messages: 1}
}

var words = problem.Words{
	VoteRequest: {"vote?"}, Vote: {"no", "yes"}, Decision: {"abort", "commit"}, Ack: {"logged"},
	Ask: {"what do you know?"}, Answer: problem.StateNames(),
}

// promises returns the promises of the theory, for runs of any length.
func promises(a parley.RunConditions) []parley.Promise {
	disk, failed := "", problem.Failed(a)
	if a.Processes.LostDisk {
		disk = "a process lost its log, so it counts as Byzantine"
	}
	ends := disk
	switch {
	case disk != "":
	case a.Faulty > 0:
		ends = "a process crashed for good: if it coordinates, the participants that voted yes are blocked"
	case a.Network.Cut || a.Network.Disconnected:
		ends = "a participant that is cut off from the coordinator after its yes is blocked until it is connected again"
	case a.Network.Lost:
		ends = "lost messages are requested again, and no run is long enough if all of these are lost"
	case a.Network.Late || a.Processes.Paused:
		ends = "a message or a process was slow, and nothing says when a decision is there"
	}
	return parley.Proved([]parley.Promise{
		parley.Promised(problem.Atomicity, "a yes and a commit are logged before they are sent, "+
			"and a process that voted yes does not decide on its own (section 7.4)", disk),
		parley.Promised(problem.Validity, "the coordinator commits only after a yes from every process", disk),
		parley.Promised(problem.NonTriviality, "the coordinator receives every yes in time", failed),
		parley.Promised(problem.Stability, "a decision is logged, or follows from an empty log", disk),
		parley.Promised(problem.Termination, "every crashed process restarts, asks for the decision, "+
			"and gets it from a log", ends),
		parley.Promised(problem.NonBlocking, "nothing fails, and the decision comes in time", failed),
	}, proofs)
}
