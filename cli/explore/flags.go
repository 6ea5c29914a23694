package explore

import (
	"fmt"
	"runtime"
	"time"

	"github.com/spf13/pflag"

	"parley"
	"parley/cli/console"
	"parley/cli/run"
	"parley/explore"
)

// flags are the flags of "parley explore PROTOCOL": the protocol's own, the initial states, the faults, what to
// search for and how, and those of the output.
type flags struct {
	run.ProtocolFlags
	fs     *pflag.FlagSet
	listed parley.Protocol
	own    []string      // the names of the protocol's own flags
	asks   run.PlanFlags // --requests and --workload

	faulty string
	liars  int
	values string
	model  explore.Model
	beyond bool
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
	alike          string
	traceTo, svg   string
	json           bool
	width          int
}

// The values of --step and --order.
var (
	grains = []string{"message", "round", "split"}
	orders = []string{"breadth", "depth", "random"}
)

func newFlags(p parley.Protocol, fs *pflag.FlagSet) *flags {
	f := &flags{fs: fs, listed: p}
	f.own = f.Declare(p, fs)
	if n := fs.Lookup("n"); n != nil {
		n.DefValue = fmt.Sprintf("%d, or as many as bear one fault", atLeast(p))
	}
	f.asks.Declare(fs, []string{"requests", "workload"}, whenever)
	fs.StringVar(&f.faulty, "faulty", "",
		"`who` is faulty: 1, which may do anything, or 1=flip as in a run, or none")
	fs.IntVar(&f.liars, "liars", 0,
		"try every choice of so `many` processes that may do anything (default: m, of a protocol that bears liars)")
	fs.BoolVar(&f.outspoken, "outspoken", false,
		"those who may do anything always say something: silence is left out")
	fs.StringVar(&f.values, "values", "",
		"initial `values` to try, each for every process that proposes (default: the alphabet)")
	fs.BoolVar(&f.beyond, "beyond-bound", false,
		"explore although the theorem promises nothing, and mind what is not promised")
	f.declareModel(fs)

	fs.StringSliceVar(&f.properties, "property", nil, "a `property` to look at (default: all)")
	fs.StringVar(&f.goal, "goal", "", "search for a state in which `THIS` is so")
	fs.StringVar(&f.always, "always", "", "demand that in every state `THIS` is so")
	fs.StringVar(&f.eventually, "eventually", "",
		"demand that at the end of every run `THIS` is so; where there are rounds")
	fs.BoolVar(&f.pairs, "indistinguishable", false,
		"search for runs that look the same to a process which must decide otherwise in one than in another; "+
			"where there are rounds")
	fs.StringVar(&f.step, "step", grains[0],
		"make steps of one `message|round|split`: split is by rounds, the last one split by receiver")
	fs.StringVar(&f.order, "order", orders[0], "visit states in this order: `breadth|depth|random`")
	fs.IntVar(&f.depth, "depth", 0, "make at most so many `steps` in a run (default: no limit)")
	fs.Uint64Var(&f.states, "states", 0, "visit at most so many `states` (default: no limit)")
	fs.Uint64Var(&f.memory, "memory", 4, "stop when more than so many `GiB` are in use")
	fs.DurationVar(&f.limit, "for", time.Minute, "search for so `long` at most; 0: until all is visited")
	fs.IntVar(&f.walks, "walks", 10_000, "how many `runs` to draw, with --order random")
	fs.Uint64Var(&f.seed, "seed", 1, "the seed of what is drawn")
	fs.IntVar(&f.workers, "workers", runtime.NumCPU(), "how many threads search")
	fs.BoolVar(&f.all, "all", false, "go on after something was found")
	fs.BoolVar(&f.unreduced, "unreduced", false, "make all steps in every order, also where that leads to the same")
	fs.BoolVar(&f.ordered, "ordered", false, "tell states apart by the order in which different processes were asked and "+
		"delivered (default: true if a property depends on it)")
	fs.StringVar(&f.alike, "alike", "",
		"`processes` that may change names, as in 2,3: of states alike one is visited")

	fs.StringVar(&f.traceTo, "trace", "", "write the run that was found to a `file`; - is standard output")
	fs.StringVar(&f.svg, "svg", "", "draw the run that was found into an SVG `file`; - is standard output")
	fs.BoolVar(&f.json, "json", false, "print one JSON object")
	console.Prints(fs, "explore", exploreOutput{})
	console.Prints(fs, "explore-indistinguishable", pairsOutput{})
	fs.IntVar(&f.width, "width", 0, "columns to fold to (default: the terminal's)")
	console.Common(fs, "width")
	return f
}

// whenever says how the keys differ from those of a run.
var whenever = map[string]string{
	"requests": ". When only says what a process is asked first",
	"workload": " (default: one of each of two processes, and of the first another one where FIFO order counts)",
}

// faultCount is the maximum number of faults of one kind.
type faultCount struct {
	n          *int
	flag, help string
	one, many  string // its names
}

// faultCounts returns the fault counts of a model.
func faultCounts(m *explore.Model) []faultCount {
	return []faultCount{
		{&m.Crashes, "crashes", "how `many` crashes there may be, between steps and in the midst of one", "crash", "crashes"},
		{&m.Restarts, "restarts", "how `many` times a process that crashed may come back", "restart", "restarts"},
		{&m.LostDisks, "lost-disks", "how `many` of these may come back without what was durable", "lost disk", "lost disks"},
		{&m.Losses, "losses", "how `many` messages may be lost", "lost message", "lost messages"},
		{&m.Doubles, "doubles", "how `many` messages may arrive twice", "doubled message", "doubled messages"},
		{&m.FalseSuspicions, "false-suspicion", "how `many` times a process may be told falsely that one crashed",
			"false suspicion", "false suspicions"},
		{&m.Timeouts, "timeouts", "how `many` timers may run out, at any time, where no bound on delays is assumed",
			"timeout", "timeouts"},
	}
}

// declareModel adds the flags for faults other than lies. Some names are also keys of a scenario, for which a
// protocol may have a flag of its own.
func (f *flags) declareModel(fs *pflag.FlagSet) {
	m := &f.model
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
	yes(&m.Detect, "detect", "tell every process of every crash, when all that was sent there has arrived")
	yes(&m.Overtaking, "overtaking", "a notice of a crash may overtake messages in flight (default: it comes after them)")
	yes(&m.FIFO, "fifo", "links keep the order of messages (default: true if the protocol relies on it)")
	yes(&m.InTime, "in-time", "messages arrive within the delay that the protocol relies on (default: true if it does, "+
		"unless there are --timeouts)")
}

// Reserved returns the flags that no protocol may define.
func Reserved() []string {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	newFlags(parley.Protocol{}, fs)
	return run.ReservedNames(fs)
}
