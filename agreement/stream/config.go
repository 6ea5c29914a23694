package stream

import (
	"flag"

	"parley"
	"parley/agreement/problem"
	"parley/lockstep"
	"parley/mux"
)

// Config configures one stream. It must be identical at all processes, except Name and DiskIntact.
type Config struct {
	Key
	N int
	// Window is how many slots may begin in the longest duration of one slot.
	Window int
	// Name returns the name of a process, for Evidence; nil means its number.
	Name func(parley.ID) string
	// DiskIntact says that a restarting process has not lost its disk. If such a process finds no record on its disk,
	// it has taken part in no slot of this stream.
	DiskIntact bool
}

// Simulated is the schedule of simulated streams: on demand, with room for messages of 900 ticks
// even while a process rejoins.
var Simulated = lockstep.Schedule{Delta: 3000, Slack: 50, Early: true, OnDemand: true}

func (c Config) check() error {
	if err := c.Check(c.N); err != nil {
		return err
	}
	most := maxWindow
	if !c.Timed() {
		most = slotTimers / 2
	}
	if c.Window < 1 || c.Window > most {
		return parley.FlagErrorf("window", "%d slots: allowed are 1 to %d", c.Window, most)
	}
	return nil
}

const maxWindow = 1 << 16

// New returns the protocol, with rounds on the given schedule, which must be on demand. Without rounds, a process
// waits two of them for the decision before it asks for the next view. New panics if the configuration is invalid.
func New(c Config, when lockstep.Schedule) parley.Protocol {
	if err := c.check(); err != nil {
		panic("stream: " + err.Error())
	}
	if c.Name == nil {
		c.Name = parley.ID.String
	}
	if !c.Timed() {
		return newViews(c, when)
	}
	rounds := c.Rounds(c.N)
	frames := mux.InSlots(lockstep.Of(rounds, when))
	j := streamJudge{Config: c, delay: when.RejoinDelay(), age: parley.Tick(rounds.Last+2) * when.Delta}
	return parley.Protocol{
		Name: "stream", Title: "agreements on request, many at a time, among processes that restart",
		Paper:  "article; lecture, relations among the agreement problems; slots and rejoining are Parley's own",
		Timing: parley.Synchronous, Faults: rounds.Faults, N: c.N, M: c.M, Proposers: rounds.Proposers,
		Kinds:    []string{"", "FRAME", "EVIDENCE?", "EVIDENCE", "WHERE?", "WHERE", "NAMES?", "NAMES"},
		Relies:   parley.ModelAssumptions{Delay: j.delay},
		OnDemand: true,
		Rejoins:  true,
		Span:     40 * j.age, // lies, and names that too few request, make slots begin without end
		New: func(self parley.ID) parley.Machine {
			core := streamCore{Config: c, self: self, when: when, outOfTurn: !c.All()}
			if c.All() {
				return newVectorMachine(core)
			}
			return newSourceMachine(core)
		},
		Properties: j.properties(),
		Promises:   c.promises,
		Bound:      c.bound,
		Size:       problem.CountSent,
		Explain:    explain(frames.Explain),
		Lies:       lies(frames.Lies, rounds.Faults == parley.SignedByzantineFaults),
		Overhears:  rounds.Overhears,
		Flags:      parley.Flags(c, flags, func(c Config) parley.Protocol { return New(c, when) }),
	}
}

func flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	fs.IntVar(&c.N, "n", c.N, "number of `processes`")
	fs.IntVar(&c.M, "m", -1, "`faults` to tolerate (default: as many as the algorithm tolerates, at most 4)")
	fs.Var((*algorithmFlag)(&c.Algorithm), "algorithm", "`algorithm` that decides each slot: "+
		"eig|om|sm|phaseking|tetra")
	source := fs.String("source", "", "`process` that is the source, or all (default: the first process); "+
		"the processes agree on the values of the source")
	fs.IntVar(&c.Window, "window", c.Window, "maximum `number` of unfinished slots")
	return func(c *Config, naming parley.Naming) error {
		if c.M < 0 {
			c.M = c.Algorithm.Most(c.N)
		}
		switch *source {
		case "":
		case "all":
			c.Source = Everyone
		default:
			id, err := naming(*source)
			if err != nil {
				return &parley.FlagError{Flag: "source", Err: err}
			}
			c.Source = id
		}
		return c.check()
	}
}

// algorithmFlag is an Algorithm as a flag.
type algorithmFlag Algorithm

func (f *algorithmFlag) String() string { return Algorithm(*f).String() }

// Set reads the name of an algorithm.
func (f *algorithmFlag) Set(text string) error {
	a, err := ParseAlgorithm(text)
	*f = algorithmFlag(a)
	return err
}

func (t Key) bound(n, m int) error {
	if t.Algorithm == SM {
		return problem.SignedBound(n, m)
	}
	return problem.OralBound(n, m)
}

// promises returns what holds under given run conditions. A process that was down counts as
// one of the m that may be faulty, in the whole run, because how many are down at a time is not known.
func (c Config) promises(a parley.RunConditions) []parley.Promise {
	lacks := ""
	switch err := c.bound(a.N, a.M); {
	case err != nil:
		lacks = err.Error()
	case a.Faulty+a.Away > a.M:
		lacks = a.ExcessDown(a.Faulty + a.Away)
	case a.Away > 0 && a.N < 2*a.M+2:
		lacks = "a process that rejoins needs the reports of m+1 correct other processes, so n >= 2m+2 " +
			"is necessary"
	}
	say := func(name, because string) parley.Promise { return parley.Promised(name, because, lacks) }
	return []parley.Promise{
		say(problem.Agreement, "a process that missed part of a slot decides nothing in it"),
		say(problem.Validity, "every process receives messages from a correct process that is on "+
			"time, and each signature is for one slot only"),
		say(problem.Integrity, "a restarted process takes no part in slots that it may have been in before"),
		say(problem.Termination, "a slot begins when a correct process opens it, and ends at a fixed time"),
		say(Rejoining, "a process listens for the duration of a slot and then knows when the next slot "+
			"may begin"),
	}
}
