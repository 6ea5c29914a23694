package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"parley"
	"parley/internal/draw"
	"parley/internal/scenario"
	"parley/sim"
)

// sweep is "parley sweep".
func (a *app) sweep() *cobra.Command {
	return &cobra.Command{
		Use:   "sweep PROTOCOL|FILE",
		Short: "Run a scenario with many seeds and look for a broken promise",
		Long: "Sweep runs a protocol, or the scenario in a file, once with each seed, on all cores. What the\n" +
			"scenario leaves to be drawn (random, workload, delays, coins) is drawn from the seed. It counts\n" +
			"the faults that came, and stops at the first promise that was broken, which it makes as small\n" +
			"as it can and prints with the command that runs it again. The flags are those of run.",
		Example: "  parley sweep eig -n 4 -m 1 --faulty 2=random --seeds 1..2000\n" +
			"  parley sweep docs/scenarios/article.yaml --seeds 1..500 --json",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "--help" || args[0] == "-h" {
				return cmd.Help()
			}
			return a.runSweep(args)
		},
	}
}

// sweepFlags are those of a sweep beside those of the runs.
type sweepFlags struct {
	seeds   string
	all     bool
	workers int
}

// runSweep reads the command line, which begins with a protocol or a file.
func (a *app) runSweep(args []string) error {
	var file *scenarioFile
	name := args[0]
	p, err := a.find(name)
	if err != nil && (strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")) {
		if file, err = readScenario(name); err != nil {
			return err
		}
		if name, err = file.protocol(); err != nil {
			return err
		}
		p, err = a.find(name)
	}
	if err != nil {
		return err
	}
	var own sweepFlags
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f := newRunFlags(p, fs)
	fs.StringVar(&own.seeds, "seeds", "1..1000", "the seeds, FIRST..LAST")
	fs.BoolVar(&own.all, "all", false, "go on after a broken promise, and collect them")
	fs.IntVar(&own.workers, "workers", runtime.NumCPU(), "how many runs at a time")
	f.viewOnly = append(f.viewOnly, "seeds", "all", "workers", "seed")
	if err := fs.Parse(args[1:]); err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("parley sweep: %q was not expected", fs.Arg(0))
	}
	if file != nil {
		if err := file.apply(f); err != nil {
			return err
		}
	}
	first, last, err := parseSeeds(own.seeds)
	if err != nil {
		return err
	}
	if own.workers < 1 {
		return &parley.FlagError{Flag: "workers", Err: fmt.Errorf("%d: at least 1 is needed", own.workers)}
	}
	// A picture wants few broadcasts, and a search many.
	if p.Serves && !f.plan.given("workload") && !f.plan.given("requests") {
		if err := fs.Set("workload", "{broadcasts: 6, within: 3000}"); err != nil {
			return err
		}
	}
	base, err := f.setup()
	if err != nil {
		return file.about(err)
	}
	s := &sweeping{app: a, flags: f, base: base, all: own.all, workers: own.workers, first: first, last: last}
	s.run()
	s.smallest()
	if f.json {
		enc := json.NewEncoder(a.out)
		enc.SetIndent("", "  ")
		err = enc.Encode(s.summary())
	} else {
		err = s.print(a.out)
	}
	if err == nil && len(s.found) > 0 {
		return statusError(violated)
	}
	return err
}

// parseSeeds reads FIRST..LAST, or one seed.
func parseSeeds(text string) (first, last uint64, err error) {
	low, high, more := strings.Cut(text, "..")
	if !more {
		high = low
	}
	first, errLow := strconv.ParseUint(low, 10, 64)
	last, errHigh := strconv.ParseUint(high, 10, 64)
	if errLow != nil || errHigh != nil || last < first || last-first >= 1<<40 {
		err = &parley.FlagError{Flag: "seeds", Err: fmt.Errorf("%q: FIRST..LAST was expected, as in 1..1000", text)}
	}
	return first, last, err
}

// broken is a promise that a run broke.
type broken struct {
	Seed     uint64   `json:"seed"`
	Property string   `json:"property"`
	How      string   `json:"how"`
	Again    []string `json:"again"`           // the arguments that run it again
	Least    []string `json:"least,omitempty"` // and the least of it that still fails
}

// sweeping is a sweep at work.
type sweeping struct {
	*app
	flags       *runFlags
	base        setup
	all         bool
	workers     int
	first, last uint64

	made       atomic.Uint64 // runs so far, for the progress
	runs       uint64
	deliveries uint64 // messages that machines received
	delivered  uint64 // to above
	faults     map[string]uint64
	properties map[string]*tally
	found      []broken
	wall       time.Duration
}

// tally is how often a property held.
type tally struct {
	Held        uint64 `json:"held"`
	Broken      uint64 `json:"broken"`                 // although it was promised
	NotPromised uint64 `json:"not_promised_held"`      // and it held
	Unpromised  uint64 `json:"not_promised_broken"`    // and it did not
	Seen        uint64 `json:"seen,omitempty"`         // of a property that is to hold sometimes
	Unseen      uint64 `json:"never_in_run,omitempty"` // runs without
}

// result is what one run adds to a sweep.
type result struct {
	seed       uint64
	stats      sim.Stats
	delivered  int
	verdicts   []parley.Verdict
	unfinished bool
}

// one makes one run.
func (s setup) one(seed uint64, memory *sim.Sim) result {
	s.reseed(seed)
	memory.Reset(s.options())
	memory.Run()
	memory.History.Naming = s.names.full
	r := result{seed: seed, stats: memory.Stats, delivered: len(memory.History.Deliveries)}
	r.verdicts = parley.Judge(s.protocol, s.assumptions(&memory.History, factsOf(memory)), &memory.History)
	r.unfinished = memory.Stats.OutOfSteps
	return r
}

// run makes all runs, batch by batch, so that what is found does not depend on
// which worker was quick.
func (s *sweeping) run() {
	began := time.Now()
	s.faults, s.properties = make(map[string]uint64), make(map[string]*tally)
	stop := s.progress(began)
	defer stop()
	defer func() { s.wall = time.Since(began) }()
	memories := make([]*sim.Sim, s.workers)
	for i := range memories {
		memories[i] = new(sim.Sim)
	}
	batch := uint64(64 * s.workers)
	for from := s.first; ; from += batch {
		n := min(batch, s.last-from+1)
		results := make([]result, n)
		var wait sync.WaitGroup
		for w := range s.workers {
			wait.Add(1)
			go func() {
				defer wait.Done()
				for i := uint64(w); i < n; i += uint64(s.workers) {
					results[i] = s.base.one(from+i, memories[w])
					s.made.Add(1)
				}
			}()
		}
		wait.Wait()
		for _, r := range results {
			s.add(r)
		}
		if len(s.found) > 0 && !s.all || from+n-1 == s.last {
			return
		}
	}
}

// add counts one run.
func (s *sweeping) add(r result) {
	s.runs++
	s.deliveries += r.stats.Deliveries
	s.delivered += uint64(r.delivered)
	// order: sums
	for kind, n := range r.stats.Faults() {
		s.faults[kind] += n
	}
	if r.unfinished {
		s.faults["runs given up"]++
	}
	for _, v := range r.verdicts {
		t := s.properties[v.Property.Name]
		if t == nil {
			t = new(tally)
			s.properties[v.Property.Name] = t
		}
		switch {
		case v.Property.Mode == parley.Sometimes && v.Broken == nil:
			t.Seen++
		case v.Property.Mode == parley.Sometimes:
			t.Unseen++
		case v.Promise.Holds && v.Broken == nil:
			t.Held++
		case v.Promise.Holds:
			t.Broken++
			s.found = append(s.found, broken{
				Seed: r.seed, Property: v.Property.Name, How: v.Broken.Error(), Again: s.again(r.seed),
			})
		case v.Broken == nil:
			t.NotPromised++
		default:
			t.Unpromised++
		}
	}
}

// again is the command that makes a run of the sweep again.
func (s *sweeping) again(seed uint64) []string {
	return append(slices.Clone(s.base.args), "--seed="+strconv.FormatUint(seed, 10))
}

// smallest makes the first failure as small as it gets.
func (s *sweeping) smallest() {
	if len(s.found) == 0 {
		return
	}
	f := &s.found[0]
	memory := new(sim.Sim)
	drawn := s.base
	drawn.reseed(f.Seed)
	seed := f.Seed
	fails := func(plan scenario.Plan) bool {
		try := drawn
		try.drawn = plan
		for k := range uint64(8) {
			candidate := seed
			if k > 0 {
				candidate = k
			}
			try.seed, try.signer = candidate, try.sign(candidate)
			memory.Reset(try.options())
			memory.Run()
			a := try.assumptions(&memory.History, factsOf(memory))
			for _, v := range parley.Judge(try.protocol, a, &memory.History) {
				if v.Property.Name == f.Property && v.Property.Mode != parley.Sometimes && v.Violated() {
					seed = candidate
					return true
				}
			}
		}
		return false
	}
	if !fails(drawn.drawn) {
		return
	}
	least := scenario.Minimize(drawn.drawn, fails)
	args := slices.DeleteFunc(slices.Clone(s.base.args), func(arg string) bool {
		key, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		return slices.Contains(scenario.Keys, key)
	})
	for _, set := range least.Flags(s.base.names.bare) {
		args = append(args, "--"+set)
	}
	f.Least = append(args, "--seed="+strconv.FormatUint(seed, 10))
}

// progress says twice a second how far the sweep is, if there is a terminal.
func (s *sweeping) progress(began time.Time) (stop func()) {
	f, ok := s.err.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	total := s.last - s.first + 1
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				fmt.Fprint(f, "\r\x1b[K")
				return
			case <-time.After(500 * time.Millisecond):
				n := s.made.Load()
				const cells = 30
				filled := int(n * cells / total)
				fmt.Fprintf(f, "\r\x1b[K[%s%s] %s of %s seeds, %.0f a second", strings.Repeat("=", filled),
					strings.Repeat(" ", cells-filled), draw.Number(n), draw.Number(total),
					float64(n)/time.Since(began).Seconds())
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// summary is what --json prints.
func (s *sweeping) summary() any {
	return struct {
		Protocol   string            `json:"protocol"`
		Runs       uint64            `json:"runs"`
		Seconds    float64           `json:"wall_seconds"`
		Received   uint64            `json:"messages_received"`
		Delivered  uint64            `json:"delivered"`
		Faults     map[string]uint64 `json:"faults"`
		Properties map[string]*tally `json:"properties"`
		Broken     []broken          `json:"broken"`
	}{s.base.protocol.Name, s.runs, s.wall.Seconds(), s.deliveries, s.delivered, s.faults, s.properties, s.found}
}

// print writes the outcome for people.
func (s *sweeping) print(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: seeds %d..%d, %s in %.1f s\n", s.base.protocol.Name, s.first, s.first+s.runs-1,
		draw.Count(s.runs, "run", "runs"), s.wall.Seconds())
	fmt.Fprintf(&b, "messages received %s, delivered to above %s\n", draw.Number(s.deliveries), draw.Number(s.delivered))
	var kinds []string
	// order: sorted below
	for kind, n := range s.faults {
		if n > 0 {
			kinds = append(kinds, fmt.Sprintf("%s %s", kind, draw.Number(n)))
		}
	}
	slices.Sort(kinds)
	if len(kinds) == 0 {
		kinds = []string{"none"}
	}
	b.WriteString(draw.Fold("faults that came: "+strings.Join(kinds, ", "), s.width(s.flags.view.width)) + "\n\n")
	for _, q := range s.base.protocol.Properties {
		if t := s.properties[q.Name]; t != nil {
			fmt.Fprintf(&b, "%-24s %s\n", q.Name, t)
		}
	}
	for i, f := range s.found {
		if i == 5 {
			fmt.Fprintf(&b, "\nand %s more\n", draw.Count(uint64(len(s.found)-i), "broken promise", "broken promises"))
			break
		}
		fmt.Fprintf(&b, "\nseed %d breaks %s: %s\n  again: %s\n", f.Seed, f.Property, f.How, command(f.Again))
		if len(f.Least) > 0 {
			fmt.Fprintf(&b, "  least: %s\n", command(f.Least))
		}
	}
	if len(s.found) == 0 {
		b.WriteString("\nno promise was broken\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (t *tally) String() string {
	var parts []string
	say := func(n uint64, what string) {
		if n > 0 {
			parts = append(parts, draw.Number(n)+" "+what)
		}
	}
	say(t.Held, "held")
	say(t.Broken, "BROKEN")
	say(t.NotPromised, "held, not promised")
	say(t.Unpromised, "broken, not promised")
	say(t.Seen, "runs show it")
	say(t.Unseen, "runs do not")
	return strings.Join(parts, ", ")
}

// command writes arguments of run as a shell takes them.
func command(args []string) string {
	out := "parley run"
	for _, arg := range args {
		out += " " + quoted(arg)
	}
	return out
}
