package quorum

import (
	"cmp"
	"flag"
	"fmt"
	"iter"

	"parley"
	"parley/agreement/ballot"
	"parley/commit/problem"
)

// Config configures one transaction.
type Config struct {
	// N is the number of processes. All of them vote. M is how many of them may be crashed or unreachable while the
	// others continue.
	N, M int
	// Delta is the longest time that a message takes, including the receiver's time to act on it, in ticks of a
	// process's clock. If a message takes longer, transactions may abort unnecessarily, but nothing worse happens. 0
	// means 1000.
	Delta parley.Tick
	// Votes is how long a process may take until it has its vote, after it was asked. 0 means one Delta.
	Votes parley.Tick
}

// Times in Deltas, in addition to that for votes.
const (
	patience = 2 // for votes, beyond the time to have them: a round trip
	first    = 6 // likewise, until the first process tries again: all phases of a ballot
	stagger  = 2 // additional wait of each next process
	// span is the length of a run: ballots of disconnected processes come at longer and longer intervals.
	span    = 120
	longest = parley.Tick(1) << 40
)

// Check returns what is wrong with c, or nil.
func (c Config) Check() error {
	switch err := parley.CheckN(c.N, 2); {
	case err != nil:
		return err
	case c.M < 0 || c.M >= c.N:
		return parley.FlagErrorf("m", "%d crashes of %d processes: allowed are 0 to n-1 = %d", c.M, c.N, c.N-1)
	case c.Votes < 0 || c.Votes > longest:
		return fmt.Errorf("%d ticks for votes: allowed are 1 to %d", c.Votes, longest)
	}
	return problem.CheckDelta(c.Delta, longest)
}

// New returns the protocol. It panics if c.Check fails.
func New(c Config) parley.Protocol {
	if err := c.Check(); err != nil {
		panic("quorum: " + err.Error())
	}
	c.Delta = cmp.Or(c.Delta, 1000)
	c.Votes = cmp.Or(c.Votes, c.Delta)
	synod := ballot.New(ballot.Config{N: c.N, M: c.M})
	return parley.Protocol{
		Name:       "quorum",
		Title:      "atomic commitment by majorities, which survives a partition",
		Paper:      "after Gray, Lamport 2006; the synod of Lamport 1998",
		Timing:     parley.Asynchronous,
		Relies:     parley.ModelAssumptions{Delay: c.Delta},
		Span:       span * c.Delta,
		Faults:     parley.CrashFaults,
		Kinds:      synod.Kinds,
		N:          c.N,
		M:          c.M,
		Proposers:  parley.Everyone(c.N),
		New:        func(self parley.ID) parley.Machine { return newProcess(c, self) },
		Properties: problem.Uniform(parley.Everyone(c.N)),
		Promises:   promises,
		Bound:      ballot.Bound,
		Cost:       Cost,
		Size:       synod.Size,
		Explain:    explain(synod),
		Flags:      parley.Flags(c, flags, New),
		Progress:   problem.Progress,
	}
}

func newProcess(c Config, self parley.ID) *process {
	p := &process{c: c, self: self, asked: parley.All}
	p.synod = ballot.NewInstance(self, parley.Everyone(c.N), p)
	return p
}

func flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	fs.IntVar(&c.N, "n", c.N, "number of `processes`")
	fs.IntVar(&c.M, "m", -1, "`crashes` to tolerate (default: as many as the theorem allows)")
	check := problem.DeltaFlag(fs, &c.Delta)
	return func(c *Config, _ parley.Naming) error {
		c.Votes = 0 // derived from delta
		if c.M == -1 {
			c.M = max(0, (c.N-1)/2)
		}
		return check(c.Delta, c.Check())
	}
}

// Cost counts a transaction in which nothing fails, whatever the votes: one ballot. The cost has one entry,
// because messages are not counted by phase.
func Cost(n, m int) parley.Cost {
	one := ballot.Cost(n, m)
	return parley.Cost{Rounds: one.Rounds, PerRound: []parley.Traffic{one.Total()}}
}

// misfit reports whether m brings a value that is no outcome, which the ballots cannot know.
func misfit(m parley.Msg) bool {
	value, brings := ballot.Value(m)
	return brings && problem.ReadOutcome(value) == problem.Undecided
}

// explain shows a message as the ballots do, with the vote that a promise brings.
func explain(synod parley.Protocol) func(parley.Env, parley.Msg, func(parley.ID) string) iter.Seq[string] {
	return func(e parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
		return func(yield func(string) bool) {
			for row := range synod.Explain(e, m, name) {
				// Without an accepted value in front, the Body is a 0 and the report.
				if m.Kind == ballot.Promise && m.Value == 0 && len(m.Body) > 1 {
					row += ", votes " + parley.Printable(m.Body[1:])
				}
				if !yield(row) {
					return
				}
			}
		}
	}
}

// promises returns the promises of the theory, for runs of any length.
func promises(a parley.RunConditions) []parley.Promise {
	disk := ""
	if a.Processes.LostDisk {
		disk = "a process restarted without its promises"
	}
	ends := disk
	switch err := ballot.Bound(a.N, a.M); {
	case disk != "":
	case err != nil:
		ends = err.Error()
	case a.Faulty > a.M:
		ends = fmt.Sprintf("%d processes crash, and m = %d", a.Faulty, a.M)
	case a.Processes.Minority:
		ends = "no majority is up and connected in the end"
	case a.Network.Lost || a.Network.Cut || a.Network.Disconnected:
		ends = "messages were lost, so no ballot is certain to succeed in a known time"
	case a.Processes.Paused || a.Network.Late:
		ends = "a process or a message was slow, so ballots may have interrupted each other"
	}
	alone := ends
	if alone == "" && a.Processes.Restarted {
		alone = "processes were down at the same time, perhaps a majority"
	}
	failed := problem.Failed(a)
	if failed == "" && a.Processes.Suspected {
		failed = "a process was suspected, so the others did not wait for its vote"
	}
	return parley.Proved([]parley.Promise{
		parley.Promised(problem.Atomicity, "any two majorities share a process: there is one decision (Lamport 1998)", disk),
		parley.Promised(problem.Validity, "only a process that has received a yes from all processes "+
			"proposes to commit", disk),
		parley.Promised(problem.NonTriviality, "the first ballot receives every vote in time", failed),
		parley.Promised(problem.Stability, "there is one decision, which is logged", disk),
		parley.Promised(problem.Termination, "a majority is up, and the times between ballots double", ends),
		parley.Promised(problem.NonBlocking, "a majority is always reachable", alone),
	}, proofs)
}
