package bracha

import (
	"cmp"
	"flag"
	"fmt"
	"iter"

	"parley"
	agree "parley/agreement/problem"
	"parley/broadcast/problem"
)

// Config must be identical on all processes.
type Config struct {
	N, M int // processes, and faults to tolerate
	// Window is how many broadcasts of one sender a process keeps, from the first broadcast that it has not
	// delivered. The default is 96, and the minimum is 3. A correct process may fall behind by a third of Window.
	Window int
	// Limit is the largest payload, in bytes. The default is 64 KiB.
	Limit int
}

// check returns an error that names the first fault of c, or nil. It does not check whether n processes
// tolerate m faults: see Bound.
func (c Config) check() error {
	switch {
	case c.N < 1 || c.N > parley.MaxProcesses:
		return parley.CheckN(c.N, 1)
	case c.M < 0 || c.M >= c.N:
		return parley.FlagErrorf("m", "%d faults of %d processes: allowed are 0 to n-1 = %d", c.M, c.N, c.N-1)
	case c.Window < 3:
		return parley.FlagErrorf("window", "%d broadcasts: allowed are at least 3", c.Window)
	case c.Limit < 0 || c.Limit > parley.MaxBody:
		return parley.FlagErrorf("limit", "%d bytes: allowed are 0 to %d", c.Limit, parley.MaxBody)
	}
	return nil
}

// New returns the protocol. It panics if c is invalid.
func New(c Config) parley.Protocol {
	c.Window, c.Limit = cmp.Or(c.Window, 96), cmp.Or(c.Limit, 64<<10)
	if err := c.check(); err != nil {
		panic("bracha: " + err.Error())
	}
	return parley.Protocol{
		Name:   "bracha",
		Title:  "reliable broadcast among processes that lie, by echo and ready messages",
		Paper:  "Bracha, Asynchronous Byzantine agreement protocols (1987)",
		Faults: parley.OralByzantineFaults,
		Kinds:  []string{"", "INITIAL", "ECHO", "READY"},
		N:      c.N,
		M:      c.M,
		Serves: true,
		Properties: append(problem.Of(problem.Validity, problem.Agreement, problem.SenderIntegrity, problem.Delivery),
			consistency, totality),
		Promises: promises,
		Bound:    agree.OralBound,
		Cost:     agree.EchoCost,
		Size:     func(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{Messages: 1} },
		Explain:  explain,
		Lies:     lies,
		Rename:   problem.RenameOrigin,
		New:      func(parley.ID) parley.Machine { return &process{c: c, senders: make([]stream, c.N)} },
		Flags:    parley.Flags(c, flags, New),
	}
}

// flags declares the flags of the protocol.
func flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	fs.IntVar(&c.N, "n", c.N, "number of `processes`")
	fs.IntVar(&c.M, "m", -1, "`faults` to tolerate (default: as many as the theorem allows)")
	fs.IntVar(&c.Window, "window", c.Window, "maximum `number` of broadcasts that a process stores for each "+
		"sender, 3 or more")
	return func(c *Config, _ parley.Naming) error {
		if c.M < 0 {
			c.M = max(0, agree.MostOral(c.N))
		}
		return c.check()
	}
}

// promises returns which properties hold under the conditions of a run.
func promises(a parley.RunConditions) []parley.Promise {
	safe := a.Excess()
	live := safe
	if a.Faulty <= a.M {
		safe = ""
		live = missing(a)
	}
	const joined = "n > 3m: if one correct process delivers, m+1 correct processes are ready, and all others join them"
	return parley.Proved([]parley.Promise{
		parley.Promised(problem.Validity, "n > 3m: all correct processes echo what a correct sender broadcasts", live),
		parley.Promised(problem.Agreement, joined, live),
		parley.Promised(problem.SenderIntegrity,
			"more than (n+m)/2 processes echo a message: one of them is correct and received it from the sender", safe),
		parley.Promised(problem.Delivery, "follows from validity if a process broadcasts", live),
		parley.Promised(Consistency, "any two sets of more than (n+m)/2 echoing processes share a correct process", safe),
		parley.Promised(Totality, joined, live),
	}, proofs)
}

// missing returns why a message may not reach all, or "".
func missing(a parley.RunConditions) string {
	switch err := agree.OralBound(a.N, a.M); {
	case err != nil:
		return err.Error()
	case a.Network.Lost || a.Network.Cut || a.Network.Disconnected:
		return "links lost messages, and no process sends them again"
	case a.Processes.Restarted:
		return "a process that restarts is silent, and does not deliver"
	}
	return ""
}

// explain names the broadcast by its sender and number, as in 2#7 hello.
func explain(_ parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
	return func(yield func(string) bool) {
		if m.Kind >= Initial && m.Kind <= Ready {
			words := [...]string{Initial: "", Echo: "echo ", Ready: "ready "}
			yield(fmt.Sprintf("%s%s#%d %s", words[m.Kind], name(m.Origin), m.Seq, parley.Printable(m.Body)))
		}
	}
}
