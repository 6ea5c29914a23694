package byzantine

import (
	"cmp"
	"flag"
	"iter"
	"slices"

	"parley"
	agree "parley/agreement/problem"
	"parley/broadcast/problem"
)

// Config must be identical on all processes.
type Config struct {
	N, M int // processes, and faults to tolerate
	// Durable means that processes restart with their state. A process that restarts without it asks the others to be
	// admitted.
	Durable bool
	// Batch is the size of the largest batch, in bytes, by default 256 KiB. Queue is how many bytes of requests may
	// wait for a batch, by default 32 batches. Flight is how many bytes of batches that are not ordered a process
	// sends, by default 32 batches, and one more; each batch counts as 1 KiB more than it has, and each request as 64
	// bytes more. The others keep twice as much of it.
	Batch, Queue, Flight int
	// Least and Most bound the length of view 0, in ticks. By default they are 6000 and 300,000. In between, it is 8
	// times the usual duration of a slot. Each view is twice as long as the view before.
	Least, Most parley.Tick
	// Checkpoint and KeepBytes say how much a process keeps for others that are behind: at least the last Checkpoint
	// slots, by default 256, or KeepBytes bytes of batches and cuts, by default 64 MiB, and at most twice as much. A
	// process that is further behind misses deliveries. A durable process also keeps as much for its own restart.
	Checkpoint, KeepBytes int
	// Tenure is for how many slots one process remains the owner, by default 1024.
	Tenure int
}

func (c Config) withDefaults() Config {
	c.Batch = cmp.Or(c.Batch, 256<<10)
	c.Queue, c.Flight = cmp.Or(c.Queue, 32*c.Batch), cmp.Or(c.Flight, 32*c.Batch)
	c.Least, c.Most = cmp.Or(c.Least, 6000), cmp.Or(c.Most, 300_000)
	c.Checkpoint, c.KeepBytes = cmp.Or(c.Checkpoint, 256), cmp.Or(c.KeepBytes, 64<<20)
	c.Tenure = cmp.Or(c.Tenure, 1024)
	return c
}

// check returns an error that names the first fault of c, or nil. It does not check whether n processes tolerate m
// faults: see Bound.
func (c Config) check() error {
	switch {
	case c.N < 1 || c.N > parley.MaxProcesses:
		return parley.CheckN(c.N, 1)
	case c.M < 0 || c.M >= c.N:
		return parley.FlagErrorf("m", "%d faults of %d processes: allowed are 0 to n-1 = %d", c.M, c.N, c.N-1)
	case c.Batch <= overhead || c.Batch > parley.MaxBody/4:
		return parley.FlagErrorf("batch", "%d bytes: allowed are %d to %d", c.Batch, overhead+1, parley.MaxBody/4)
	case c.Queue < c.Batch || c.Flight < c.Batch:
		return parley.FlagErrorf("queue", "%d and %d bytes: at least a batch, %d", c.Queue, c.Flight, c.Batch)
	case c.Least < 4 || c.Most < c.Least || c.Most > 1<<40: // the length of a view must not overflow
		return parley.FlagErrorf("wait", "%d to %d ticks: allowed are 4 to 2^40, in this order", c.Least, c.Most)
	case c.Checkpoint < 1 || c.KeepBytes < 1:
		return parley.FlagErrorf("checkpoint", "%d slots, %d bytes: at least 1", c.Checkpoint, c.KeepBytes)
	case c.Tenure < 1:
		return parley.FlagErrorf("tenure", "%d slots: at least 1", c.Tenure)
	}
	return nil
}

// longest returns the bytes of the longest batch.
func (c Config) longest() int { return c.Batch + headBytes + c.N*welcomeBytes }

// most returns the cost of the batches that a process keeps of a lane: a source may be one slot ahead.
func (c Config) most() int {
	return 2 * (c.Flight + perBatch + c.longest() + perItem*(c.Batch/overhead+c.N))
}

// log returns how many bytes a log may have: more than twice the state that replaces it. Without this limit, faulty
// sources could fill the log with batches that are dropped later.
func (c Config) log() int { return 4 * (c.KeepBytes + c.N*c.most()) }

// New returns the protocol. It panics if c is invalid.
func New(c Config) parley.Protocol {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		panic("byzantine: " + err.Error())
	}
	return parley.Protocol{
		Name:   "byzantine",
		Title:  "total order among processes that lie, safe whatever the timing, by agreement on cuts of lanes",
		Paper:  "Giridharan et al., Autobahn (2024); Yu, Losa and Wang, TetraBFT (2024); beyond the source documents",
		Timing: parley.Asynchronous,
		Faults: parley.OralByzantineFaults,
		Kinds: []string{"", "PROPOSE", "ECHO", "READY", "WISH", "ENTER", "WITNESS", "VOUCH", "VOTE", "DECIDED", "BATCH",
			"FETCH", "CUT", "TIPS", "ASK", "ANSWER", "SNAPSHOT", "KNOCK"},
		N:          c.N,
		M:          c.M,
		Serves:     true,
		Properties: properties(),
		Promises:   func(a parley.RunConditions) []parley.Promise { return promises(c, a) },
		Bound:      agree.OralBound,
		Size:       func(parley.Env, parley.Msg) parley.Traffic { return parley.Traffic{Messages: 1} },
		Explain: func(_ parley.Env, m parley.Msg, name func(parley.ID) string) iter.Seq[string] {
			return slices.Values([]string{explain(c.N, m, name)})
		},
		Lies: lies,
		New:  func(self parley.ID) parley.Machine { return newProcess(c, self) },
		Span: 200 * c.Least, // faulty processes may set timers without end
		// No Rename: processes own slots in the order of their IDs.
		Flags: parley.Flags(c, flags, New),
	}
}

// flags declares the flags of the protocol.
func flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	fs.IntVar(&c.N, "n", c.N, "number of `processes`")
	fs.IntVar(&c.M, "m", -1, "`faults` to tolerate (default: as many as the theorem allows)")
	fs.BoolVar(&c.Durable, "durable", c.Durable, "processes restart with their state")
	fs.IntVar(&c.Tenure, "tenure", c.Tenure, "for how many `slots` one process remains the owner")
	return func(c *Config, _ parley.Naming) error {
		if c.M < 0 {
			c.M = max(0, agree.MostOral(c.N))
		}
		return c.check()
	}
}

// promises returns which properties hold under the conditions of a run.
func promises(c Config, a parley.RunConditions) []parley.Promise {
	safe := ""
	switch err := agree.OralBound(a.N, a.M); {
	case err != nil:
		safe = err.Error()
	case a.Faulty > a.M:
		safe = a.Excess()
	case a.Faulty+a.Away > a.M && (a.Processes.LostDisk || a.Processes.Restarted && !c.Durable):
		safe = a.ExcessOf(a.Faulty+a.Away, "is faulty or restarted without its state",
			"are faulty or restarted without their state")
	}
	live := safe
	switch {
	case live != "":
	case a.Network.Lost || a.Network.Cut || a.Network.Disconnected:
		live = "links lost messages, and no process sends them again"
	case a.Processes.Restarted && !c.Durable, a.Processes.LostDisk:
		live = "a process that restarts without its state may miss deliveries"
	case a.Processes.Paused:
		live = "a process was paused, so no view is certain to succeed in a known time"
	}
	valid := live
	if live == "" && a.Processes.Restarted {
		valid = "a process may restart before a request is in a durable batch"
	}
	say := parley.Promised
	return []parley.Promise{
		say(problem.Validity, "n > 3m: each batch of a correct source is in a decided cut in the end", valid),
		say(problem.Agreement, "n > 3m: all correct processes decide the same cuts, and fetch the batches", live),
		say(problem.TotalOrder, "n > 3m: the decided cuts determine the order, whatever the timing", safe),
		say(problem.SenderIntegrity, "a correct process received each batch of a decided cut from its source", safe),
		say(problem.Delivery, "follows from validity if a process broadcasts", valid),
	}
}

// properties are the properties of total order among processes that lie. Integrity is about correct senders only,
// because a liar may broadcast the same message twice.
func properties() []parley.Property {
	all := problem.Of(problem.Validity, problem.Agreement, problem.TotalOrder, problem.SenderIntegrity,
		problem.Delivery)
	i := slices.IndexFunc(all, func(p parley.Property) bool { return p.Name == problem.SenderIntegrity })
	check := all[i].Check
	all[i].Says = "correct processes deliver a message of a correct sender at most as often as it broadcast the " +
		"message before"
	all[i].Check = func(h *parley.History) error {
		correct := *h
		correct.Deliveries = slices.DeleteFunc(slices.Clone(h.Deliveries), func(d parley.ExternalEvent) bool {
			return !h.Correct(d.From)
		})
		return check(&correct)
	}
	return all
}
