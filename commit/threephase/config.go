package threephase

import (
	"cmp"
	"flag"

	"parley"
	"parley/commit/problem"
)

// Config configures one transaction.
type Config struct {
	// N is the number of processes, including the coordinator.
	N int
	// Delta is the longest time that a message takes, including the receiver's time to act on it, in ticks of a
	// process's clock. If a message takes longer, processes assume that a running process has crashed, and nothing is
	// promised. 0 means 1000.
	Delta parley.Tick
}

// Check returns what is wrong with c, or nil.
func (c Config) Check() error {
	return cmp.Or(parley.CheckN(c.N, 2), problem.CheckDelta(c.Delta, longest))
}

const (
	longest = parley.Tick(1) << 50 // leaves room for many Deltas in a Tick
	span    = 40                   // length of a run in Deltas: a blocked process asks forever
)

// New returns the protocol. It panics if c.Check fails.
func New(c Config) parley.Protocol {
	if err := c.Check(); err != nil {
		panic("threephase: " + err.Error())
	}
	c.Delta = cmp.Or(c.Delta, 1000)
	return parley.Protocol{
		Name:       "threephase",
		Title:      "atomic commitment in three phases, which no crash blocks",
		Paper:      "Skeen 1981; Bernstein, Hadzilacos, Goodman 1987, section 7.5",
		Timing:     parley.Asynchronous,
		Relies:     parley.ModelAssumptions{Delay: c.Delta},
		Span:       span * c.Delta,
		Faults:     parley.CrashFaults,
		Kinds:      kinds,
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
		Progress:   reached,
	}
}

var kinds = []string{
	"", "VOTE-REQ", "VOTE", "PRECOMMIT", "ACK", "DECISION", "ELECT", "STATE-REQ", "STATE", "ASK", "CAME-BACK",
}

// reached implements [parley.Protocol.Progress]: a process that sends or receives a PRECOMMIT is prepared.
func reached(m parley.Msg, record bool) parley.Progress {
	if !record && m.Kind == Precommit {
		return parley.Progress{Stage: parley.StagePrepared}
	}
	return problem.Progress(m, record)
}

func newProcess(c Config, self parley.ID) *process {
	return &process{roster: roster{n: c.N, self: self, leader: first}, pending: pending{delta: c.Delta}}
}

func flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	fs.IntVar(&c.N, "n", c.N, "number of `processes`, with the coordinator")
	check := problem.DeltaFlag(fs, &c.Delta)
	return func(c *Config, _ parley.Naming) error { return check(c.Delta, c.Check()) }
}

// Terminate is the termination rule: it returns what a new coordinator decides from the states of all processes that
// have not crashed, including its own. If one of these processes is aborted or has not voted yes, all abort: such a
// process can abort, and aborts when it is asked. If one is committed or precommitted, all voted yes. Then all
// commit, and each is precommitted before the first one commits. If all are uncertain, no process has committed, and
// all abort. The rule assumes that all other processes are no longer running. For no states it returns Undecided.
func Terminate(states []problem.State) problem.Outcome {
	out := problem.Undecided
	for _, s := range states {
		switch s {
		case problem.Initial, problem.Aborted:
			return problem.Abort
		case problem.Precommitted, problem.Committed:
			out = problem.Commit
		case problem.Uncertain:
			if out == problem.Undecided {
				out = problem.Abort
			}
		}
	}
	return out
}

// Cost counts a transaction for which all vote yes, if nothing fails: a request, a vote, a PRECOMMIT, its
// acknowledgement and a decision for each participant. If a participant votes no, the cost is lower.
func Cost(n, _ int) parley.Cost { return problem.Phases(5, n) }

func size(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{Messages: 1} }

var words = problem.Words{
	VoteRequest: {"vote?"}, Vote: {"no", "yes"}, Precommit: {"precommit"}, Ack: {"precommitted"},
	Decision: {"abort", "commit"}, Elect: {"you coordinate"}, StateRequest: {"how far are you?"},
	Report: problem.StateNames(), Ask: {"what was decided?"}, CameBack: {"I restarted too"},
}

// promises returns the promises of the theory.
func promises(a parley.RunConditions) []parley.Promise {
	mistaken := mistakes(a)
	crashed, gone := mistaken, mistaken
	if mistaken == "" && (a.Faulty > 0 || a.Processes.Restarted) {
		crashed = "a process crashed"
	}
	if mistaken == "" && a.Faulty > 0 && a.Processes.Restarted {
		gone = "if all processes have crashed at some time, the restarted processes wait for the others"
	}
	return parley.Proved([]parley.Promise{
		parley.Promised(problem.Atomicity, "no process commits while a process that is up is uncertain, "+
			"and a process that does not answer has crashed (section 7.5)", mistaken),
		parley.Promised(problem.Validity, "PRECOMMIT is sent only after all have voted yes", mistaken),
		parley.Promised(problem.NonTriviality, "every vote and every acknowledgement arrives in time", crashed),
		parley.Promised(problem.Stability, "a decision is logged, or follows from an empty log", mistaken),
		parley.Promised(problem.Termination, "the processes that are up elect a coordinator, and "+
			"restarted processes ask it for the decision", gone),
		parley.Promised(problem.NonBlocking, "the states of the processes that are up suffice to decide", mistaken),
	}, proofs)
}

// mistakes returns why a running process may be taken for crashed, or a crashed one for running, or "" if
// neither can happen.
func mistakes(a parley.RunConditions) string {
	switch {
	case a.Network.Cut || a.Network.Disconnected:
		return "the network was cut in two: each side assumes that the other crashed, and decides alone"
	case a.Network.Lost:
		return "a message was lost: a process that does not answer is suspected"
	case a.Network.Late || a.Processes.Paused:
		return "a message or a process was slow: a process that does not answer in time is suspected"
	case a.Processes.Suspected:
		return "a process was suspected although it had not crashed"
	case a.Processes.LostDisk:
		return "a process lost its log, so it counts as Byzantine"
	}
	return ""
}
