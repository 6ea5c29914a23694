package byzantine

import (
	"flag"

	"parley"
	agree "parley/agreement/problem"
	"parley/broadcast/problem"
	"parley/lockstep"
	"parley/mux"
)

// Config must be identical on all processes.
type Config struct {
	N, M int // processes, and faults to tolerate
	// Window is how many slots may be unfinished. The default is 64. A process keeps the batches of three times as
	// many slots, with n batches for each slot.
	Window int
	// Depth bounds the number of unfinished slots: a process opens another slot itself only if fewer than Depth slots
	// are unfinished, or if a quarter of a batch waits. The default is 4, and the maximum is Window.
	Depth int
	// Batch is the size of the largest batch, in bytes, by default 64 KiB. It also bounds the size of a payload.
	// Queue is how many bytes may wait for slots, by default 16 batches.
	Batch, Queue int
	// Flight limits the total size of the batches that a process may send during the longest possible duration of a
	// slot. It is in bytes. The default is 96 batches. Further requests wait in the queue. The other processes keep
	// at most twice as many bytes from each process, so a liar can make them keep only a bounded number of bytes.
	Flight int
	// Tries limits how often a process that is out asks for the order without success, before it gives up. It also
	// limits how often a process opens slots if its batches arrive too late for the others. After that, such a
	// process opens slots only upon a request, or when others open them. The default is 16, so that simulated runs
	// end.
	Tries int
	// Final is for an order whose layer above needs all deliveries: a process that is out stays out, and
	// there is only one era.
	Final bool
}

func (c Config) withDefaults() Config {
	if c.Window == 0 {
		c.Window = 64
	}
	if c.Depth == 0 {
		c.Depth = min(4, c.Window)
	}
	if c.Batch == 0 {
		c.Batch = 64 << 10
	}
	if c.Queue == 0 {
		c.Queue = 16 * c.Batch
	}
	if c.Flight == 0 {
		c.Flight = 96 * c.Batch
	}
	if c.Tries == 0 {
		c.Tries = 16
	}
	return c
}

// least is the size of a batch with an empty request or a wish.
const least = head + max(overhead, wishSize)

// check returns an error that names the first fault of c, or nil. It does not check whether n processes
// tolerate m faults: see Bound.
func (c Config) check() error {
	switch {
	case c.N < 2 || c.N > parley.MaxProcesses:
		return parley.CheckN(c.N, 2)
	case c.M < 0 || c.M > c.N-2:
		return parley.FlagErrorf("m", "%d faults of %d processes: allowed are 0 to n-2 = %d", c.M, c.N, c.N-2)
	case c.Window < 1 || c.Window > 1<<16:
		return parley.FlagErrorf("window", "%d slots: allowed are 1 to %d", c.Window, 1<<16)
	case c.Depth < 1 || c.Depth > c.Window:
		return parley.FlagErrorf("ahead", "%d slots: allowed are 1 to the window, %d", c.Depth, c.Window)
	case c.Batch <= least || c.Batch > parley.MaxBody/4:
		return parley.FlagErrorf("batch", "%d bytes: allowed are %d to %d", c.Batch, least+1, parley.MaxBody/4)
	case !c.Final && c.Batch < claimSize(c.N):
		return parley.FlagErrorf("batch", "%d bytes: at least %d, what a process says of %d", c.Batch, claimSize(c.N), c.N)
	case c.Tries < 1:
		return parley.FlagErrorf("tries", "%d times: at least once", c.Tries)
	case c.Queue < c.Batch:
		return parley.FlagErrorf("queue", "%d bytes: at least a batch, %d", c.Queue, c.Batch)
	case c.Flight < c.Batch:
		return parley.FlagErrorf("flight", "%d bytes: at least a batch, %d", c.Flight, c.Batch)
	}
	return nil
}

// New returns the protocol, with rounds of the given schedule, which must be on demand. It panics if c is
// invalid.
func New(c Config, when lockstep.Schedule) parley.Protocol {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		panic("byzantine: " + err.Error())
	}
	one := slot(c, nil)
	slots := mux.InSlots(lockstep.Of(one, when))
	p := slots
	p.Name = "byzantine"
	p.Title = "total order among processes that lie, by slots of interactive consistency on digests"
	p.Paper = "Lamport, The implementation of reliable distributed multiprocess systems (1978); article"
	p.Faults = parley.OralByzantineFaults
	p.Kinds = []string{"", "FRAME", "FETCH", "BYTES", "WHERE", "JOIN", "READY", "STATE"}
	p.N, p.M = c.N, c.M
	p.Serves = true
	p.Proposers = parley.Set{}
	p.Properties = problem.Of(problem.Validity, problem.Agreement, problem.TotalOrder, problem.SenderIntegrity,
		problem.Delivery)
	p.Promises = promises
	p.Bound = agree.OralBound
	p.Cost = cost
	p.Size = agree.CountSent
	p.Explain = explainAll(c, slots)
	p.Lies = liesAll(slots)
	p.Rename = nil
	p.New = func(self parley.ID) parley.Machine { return newProcess(c, when, one, self) }
	p.Flags = parley.Flags(c, flags, func(c Config) parley.Protocol { return New(c, when) })
	return p
}

// flags declares the flags of the protocol.
func flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	fs.IntVar(&c.N, "n", c.N, "number of `processes`")
	fs.IntVar(&c.M, "m", -1, "`faults` to tolerate (default: as many as the theorem allows)")
	fs.IntVar(&c.Window, "window", c.Window, "maximum `number` of unfinished slots, 1 to 65536")
	fs.IntVar(&c.Depth, "ahead", c.Depth, "open another slot if fewer than this `number` of "+
		"slots are unfinished")
	return func(c *Config, _ parley.Naming) error {
		if c.M < 0 {
			c.M = max(0, agree.MostOral(c.N))
		}
		return c.check()
	}
}

// cost counts one slot without faults: a frame from each process to each other in each of m+1 rounds,
// whatever the number of its requests.
func cost(n, m int) parley.Cost {
	c := parley.Cost{Rounds: m + 1}
	for range m + 1 {
		c.PerRound = append(c.PerRound, parley.Traffic{Messages: uint64(n * (n - 1))})
	}
	return c
}

// promises returns which properties hold under the conditions of a run.
func promises(a parley.RunConditions) []parley.Promise {
	lacks := ""
	switch err := agree.OralBound(a.N, a.M); {
	case err != nil:
		lacks = err.Error()
	case a.Faulty > a.M:
		lacks = a.Excess()
	}
	say := func(name, because string) parley.Promise { return parley.Promised(name, because, lacks) }
	return []parley.Promise{
		say(problem.Validity, "n > 3m: the batch of a correct process is in the vector of its slot"),
		say(problem.Agreement, "n > 3m: one correct process has the bytes of each agreed batch, and sends them"),
		say(problem.TotalOrder, "n > 3m: all correct processes agree on the vector of every slot"),
		say(problem.SenderIntegrity, "n > 3m: the entry of a correct process is the digest of its own batch"),
		say(problem.Delivery, "follows from validity if a correct process broadcasts"),
	}
}
