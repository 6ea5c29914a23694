package twophase

import (
	"flag"
	"fmt"
	"iter"

	"parley"
	"parley/commit/problem"
)

// Config is one transaction.
type Config struct {
	// N is the number of processes, the coordinator among them.
	N int
	// Delta is what a message takes at most, in ticks of a process's clock, with what
	// the receiver needs to act on it. If it takes longer, transactions are aborted
	// that need not be, and nothing worse. 0 stands for 1000.
	Delta parley.Tick
	// Votes is how long the coordinator waits for votes; 0 stands for 2 Deltas, which is
	// long enough for processes that have theirs.
	Votes parley.Tick
}

// Check tells what is wrong with it.
func (c Config) Check() error {
	switch {
	case c.N < 2 || c.N > parley.MaxProcesses:
		return parley.CheckN(c.N, 2)
	case c.Delta < 0 || c.Delta > longest:
		return parley.FlagErrorf("delta", "%d ticks: allowed are 1 to %d", c.Delta, longest)
	case c.Votes < 0 || c.Votes > longest:
		return fmt.Errorf("%d ticks for votes: allowed are 1 to %d", c.Votes, longest)
	}
	return nil
}

const (
	longest = parley.Tick(1) << 50 // leaves room for many Deltas in a Tick
	span    = 40                   // Deltas that are worth watching: who is blocked asks for ever
)

// New returns the protocol. A Config that cannot be panics.
func New(c Config) parley.Protocol {
	if err := c.Check(); err != nil {
		panic("twophase: " + err.Error())
	}
	if c.Delta == 0 {
		c.Delta = 1000
	}
	if c.Votes == 0 {
		c.Votes = 2 * c.Delta
	}
	return parley.Protocol{
		Name:  "twophase",
		Title: "atomic commitment in two phases, which may block",
		Paper: "Bernstein, Hadzilacos, Goodman 1987, section 7.4; " +
			"presumed abort: Mohan, Lindsay, Obermarck 1986",
		Timing:     parley.Asynchronous,
		Relies:     parley.Reliance{Delay: c.Delta},
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
		Explain:    explain,
		Flags:      parley.Flags(c, flags, New),
	}
}

func newProcess(c Config, self parley.ID) *process { return &process{c: c, self: self} }

func flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	fs.IntVar(&c.N, "n", c.N, "number of `processes`, the coordinator among them")
	fs.Int64Var((*int64)(&c.Delta), "delta", int64(c.Delta), "what a message takes at most, in `ticks`")
	return func(c *Config, _ parley.Naming) error {
		c.Votes = 0 // as long as delta asks for
		if err := c.Check(); err != nil || c.Delta > 0 {
			return err
		}
		return parley.FlagErrorf("delta", "a message takes one tick at least")
	}
}

// Terminate is the rule of the cooperative termination protocol: what follows from
// the states of processes that reach each other, the coordinator not among them.
// Who has committed knows that all must, and who has not voted yes, or has aborted,
// that all must abort; if all are uncertain nothing follows, for the coordinator may
// have told one that is not here. Who is precommitted does not exist in two phases,
// and is uncertain here.
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

// Cost counts a transaction which all vote for and in which nothing fails: a
// request, a vote and a decision for each participant. With a no it is less.
// Acknowledgements are not counted: they delay nobody, and travel with what is sent
// anyway. All of it is one entry: what is sent is not counted by phases.
func Cost(n, _ int) parley.Cost {
	const phases = 3
	all := parley.Traffic{Messages: phases * uint64(n-1)}
	return parley.Cost{Rounds: phases, PerRound: []parley.Traffic{all}, AtMost: true}
}

func size(_ parley.Env, m parley.Msg) parley.Traffic {
	if m.Kind == Ack {
		return parley.Traffic{}
	}
	return parley.Traffic{Messages: 1}
}

// value and outcome are how a Decision says it.
func value(o problem.Outcome) uint64 {
	if o == problem.Commit {
		return 1
	}
	return 0
}

func outcome(value uint64) problem.Outcome {
	if value == 1 {
		return problem.Commit
	}
	return problem.Abort
}

// largest is the largest Value of a kind of message.
func largest(k parley.Kind) uint64 {
	switch k {
	case Vote, Decision:
		return 1
	case Answer:
		return uint64(problem.Aborted)
	}
	return 0
}

func explain(_ parley.Env, m parley.Msg, _ func(parley.ID) string) iter.Seq[string] {
	text := "?"
	switch {
	case m.Value > largest(m.Kind):
	case m.Kind == VoteRequest:
		text = "vote?"
	case m.Kind == Vote:
		text = [...]string{"no", "yes"}[m.Value]
	case m.Kind == Decision:
		text = outcome(m.Value).String()
	case m.Kind == Ack:
		text = "logged"
	case m.Kind == Ask:
		text = "what do you know?"
	case m.Kind == Answer:
		text = problem.State(m.Value).String()
	}
	return func(yield func(string) bool) { yield(text) }
}

// promises says what the theory does, for runs of any length.
func promises(a parley.Assumptions) []parley.Promise {
	of := func(property, because, unless string) parley.Promise {
		if unless != "" {
			return parley.Promise{Property: property, Because: unless}
		}
		return parley.Promise{Property: property, Holds: true, Because: because}
	}
	disk, failed := "", failure(a)
	if a.Processes.LostDisk {
		disk = "a process forgot what it had logged: it counts as one that lies"
	}
	ends := disk
	switch {
	case disk != "":
	case a.Faulty > 0:
		ends = "a process is gone for good: if it coordinates, those who voted yes are blocked"
	case a.Network.Cut || a.Network.Disconnected:
		ends = "who is cut off from the coordinator after a yes is blocked as long as that lasts"
	case a.Network.Lost:
		ends = "what was lost is asked for again, and no run is long enough if all of that is lost"
	case a.Network.Late || a.Processes.Paused:
		ends = "a message or a process was slow, and nothing says when a decision is there"
	}
	return []parley.Promise{
		of(problem.Atomicity, "a yes and a commit are logged before they are said, "+
			"and no process decides by itself in between (section 7.4)", disk),
		of(problem.Validity, "the coordinator commits if it has heard a yes of all", disk),
		of(problem.NonTriviality, "the coordinator hears every yes in time", failed),
		of(problem.Stability, "what is decided is logged, or presumed by an empty log", disk),
		of(problem.Termination, "all come back, ask, and are answered from the log", ends),
		of(problem.NonBlocking, "nothing fails, and the decision comes in time", failed),
	}
}

// failure tells what failed that makes the time-outs run out, "" if nothing did.
func failure(a parley.Assumptions) string {
	switch {
	case a.Faulty > 0 || a.Processes.Restarted || a.Processes.LostDisk:
		return "a process crashed"
	case a.Network.Lost || a.Network.Cut || a.Network.Disconnected:
		return "messages were lost"
	case a.Network.Late || a.Processes.Paused:
		return "a message came late, or a clock ran wrong"
	}
	return ""
}
