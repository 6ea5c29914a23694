package exploration

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"parley"
	"parley/explore"
	"parley/internal/form"
	"parley/internal/scenario"
)

// Flags are the flags of "parley explore PROTOCOL": the protocol's own, the initial states, the faults, what to
// search for, and how.
type Flags struct {
	form.ProtocolFlags
	fs     *pflag.FlagSet
	listed parley.Protocol
	own    []string       // the names of the protocol's own flags
	asks   form.PlanFlags // --requests and --workload

	faulty            string
	liars             int
	values, tryValues string
	crashes           string
	model             explore.Model
	beyond            bool
	// outspoken means that liars without a behavior of their own are never silent.
	outspoken bool

	properties               []string
	goal, always, eventually string

	step, order    string
	depth, walks   int
	states, memory uint64
	limit          time.Duration
	seed           uint64
	workers        int
	all, unreduced bool
	ordered        bool // for events at different processes
	pairs          bool // of runs that look the same
	symmetry       string
}

// The values of --step and --order.
var (
	grains = []string{"message", "round", "split"}
	orders = []string{"breadth", "depth", "random"}
)

// New declares the flags for one protocol.
func New(p parley.Protocol, fs *pflag.FlagSet) *Flags {
	f := &Flags{fs: fs, listed: p}
	f.own = f.Declare(p, fs)
	if n := fs.Lookup("n"); n != nil {
		n.DefValue = fmt.Sprintf("%d, or more if one fault needs more", atLeast(p))
	}
	f.asks.Declare(fs, []string{"requests", "workload"}, whenever)
	fs.StringVar(&f.faulty, "faulty", "",
		"faulty `processes`: 1 (process 1 may do anything), 1=flip (process 1 has the behavior flip, as in "+
			"parley run), or none")
	fs.IntVar(&f.liars, "liars", 0,
		"`number` of faulty processes that may do anything; explore tries every choice of this many "+
			"processes (default: m, if the protocol tolerates Byzantine faults)")
	fs.BoolVar(&f.outspoken, "outspoken", false, "faulty processes that may do anything are never silent: "+
		"they always send some message")
	fs.StringVar(&f.values, "values", "",
		"initial `values`, as in a run: one for all processes that propose, or one for each of them")
	fs.StringVar(&f.tryValues, "try-values", "",
		"initial `values` to try for every process that proposes (default: the values of --alphabet, or "+
			"0,1)")
	fs.BoolVar(&f.beyond, "beyond-bound", false,
		"allow n and m beyond the protocol's bound, where nothing is promised, and search for broken "+
			"properties there")
	f.declareModel(fs)

	fs.StringSliceVar(&f.properties, "property", nil, "`properties` to check, separated by commas (default: all)")
	fs.StringVar(&f.goal, "goal", "", "search for a state in which this `GOAL` is true, such as 'P2 decides "+
		"0'")
	fs.StringVar(&f.always, "always", "", "search for a state in which this `GOAL` is false")
	fs.StringVar(&f.eventually, "eventually", "", "search for a run that ends in a state in which this "+
		"`GOAL` is false (only for protocols in rounds)")
	fs.BoolVar(&f.pairs, "indistinguishable", false,
		"search for runs that look the same to a process, although it must decide differently in them "+
			"(only for protocols in rounds)")
	fs.StringVar(&f.step, "step", grains[0],
		"size of a step: `message|round|split`; split is like round, but explore treats each receiver "+
			"of the last round separately")
	fs.StringVar(&f.order, "order", orders[0], "order in which states are visited: `breadth|depth|random`")
	fs.IntVar(&f.depth, "depth", 0, "maximum number of `steps` of a run (default: no limit)")
	fs.Uint64Var(&f.states, "states", 0, "maximum `number` of visited states (default: no limit)")
	fs.Uint64Var(&f.memory, "memory", 4, "stop when more than this many `GiB` are in use")
	fs.DurationVar(&f.limit, "for", time.Minute, "maximum `duration` of the search, 0 for no limit")
	fs.IntVar(&f.walks, "walks", 10_000, "`number` of random runs, with --order random")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of all random choices, a `number`")
	fs.IntVar(&f.workers, "workers", runtime.NumCPU(), "`number` of threads")
	fs.BoolVar(&f.all, "all", false, "continue after the first finding, and collect up to 100 findings")
	fs.BoolVar(&f.unreduced, "unreduced", false, "visit all orders of steps, even if the order makes no "+
		"difference")
	fs.BoolVar(&f.ordered, "ordered", false, "also distinguish states that differ only in the order in "+
		"which different processes got requests and delivered messages (default: true if a property "+
		"depends on this order)")
	fs.StringVar(&f.symmetry, "symmetry", "",
		"interchangeable `processes`, as in 2,3: if states differ only in the names of these processes, "+
			"visit only one of the states")

	return f
}

// whenever says how the keys differ from those of a run.
var whenever = map[string]string{
	"requests": "; \"when\" sets only the order in which each process gets its own requests",
	"workload": " (default: two processes broadcast once each; if the order is FIFO, the first process " +
		"broadcasts twice)",
}

// faultCount is the maximum number of faults of one kind.
type faultCount struct {
	n          *int
	flag, help string
	one, many  string // its names
}

// faultCounts returns the fault counts of a model. Crashes have a flag of their own, which also takes a list.
func faultCounts(m *explore.Model) []faultCount {
	return []faultCount{
		{&m.Crashes, "crashes", "", "crash", "crashes"},
		{&m.Restarts, "restarts", "maximum `number` of restarts of crashed processes", "restart", "restarts"},
		{&m.LostDisks, "lost-disks", "maximum `number` of restarts without durable state; each also " +
			"counts as one of the --restarts",
			"lost disk", "lost disks"},
		{&m.Losses, "losses", "maximum `number` of lost messages", "lost message", "lost messages"},
		{&m.Doubles, "doubles", "maximum `number` of messages that arrive twice", "doubled message", "doubled messages"},
		{&m.FalseSuspicions, "false-suspicion", "maximum `number` of notices of a crash that did not happen",
			"false suspicion", "false suspicions"},
		{&m.Timeouts, "timeouts", "maximum `number` of timers that expire; each may expire at any time (for " +
			"protocols without bounds on delays)",
			"timeout", "timeouts"},
	}
}

// declareModel adds the flags for faults other than lies. Some names are also keys of a scenario, for which a
// protocol may have a flag of its own.
func (f *Flags) declareModel(fs *pflag.FlagSet) {
	m := &f.model
	if f.crashes = "0"; fs.Lookup("crashes") == nil {
		fs.StringVar(&f.crashes, "crashes", "0", "maximum `number` of crashes (default: 0), or a list of "+
			"the processes that may crash, as in '[{process: 2}]'; each entry of the list allows one crash")
	}
	for _, c := range faultCounts(m) {
		if fs.Lookup(c.flag) == nil {
			fs.IntVar(c.n, c.flag, 0, c.help)
		}
	}
	yes := func(to *bool, name, help string) {
		if fs.Lookup(name) == nil {
			fs.BoolVar(to, name, false, help)
		}
	}
	yes(&m.Detect, "crash-notices", "notify each process of each crash, as soon as this process has "+
		"received all messages of the crashed process (default: true if the protocol uses a detector)")
	yes(&m.Overtaking, "overtaking", "let the notice of a crash arrive before messages that the crashed "+
		"process sent earlier")
	yes(&m.FIFO, "fifo", "links keep the order of messages (default: true if the protocol relies on it)")
	yes(&m.InTime, "in-time", "messages arrive within the delay that the protocol relies on (default: true "+
		"if the protocol relies on a delay and --timeouts is 0)")
}

// readCrashes reads --crashes: a number, or a list of processes.
func (f *Flags) readCrashes() error {
	if n, err := strconv.Atoi(f.crashes); err == nil {
		if n < 0 || n > 255 {
			return parley.FlagErrorf("crashes", "%d: allowed are 0 to 255", n)
		}
		f.model.Crashes = n
		return nil
	}
	if !strings.HasPrefix(strings.TrimSpace(f.crashes), "[") {
		return parley.FlagErrorf("crashes", "%q is neither a number nor a list: write 1, or '[{process: 2}]'", f.crashes)
	}
	at, err := scenario.ParseCrashing(f.crashes, f.Naming)
	if err != nil {
		return &parley.FlagError{Flag: "crashes", Err: err}
	}
	f.model.Crashes, f.model.CrashOnly = len(at), parley.SetOf(at...)
	return nil
}

// Pairs reports whether the search is for runs that look the same to a process.
func (f *Flags) Pairs() bool { return f.pairs }
