package run

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley"
	"parley/cli/console"
	"parley/internal/draw/prose"
	"parley/internal/form"
	"parley/internal/input"
	"parley/internal/lists"
	"parley/internal/report"
	"parley/run"
)

// Sweep is "parley sweep".
func Sweep(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sweep PROTOCOL|FILE",
		Short: "Simulate many seeds and shrink the first broken promise",
		Long: "Sweep simulates a protocol, or the scenario of a file, once for each seed. It uses all " +
			"cores. The seed determines the random faults, broadcasts, delays, and all other random choices. Sweep " +
			"counts the faults and the verdicts, and stops at the first broken promise. It then shrinks " +
			"that run: it removes faults and requests that the failure does not need. It prints a command " +
			"that repeats the original run, and a command that repeats the smaller run. It changes no " +
			"file.\n\n" +
			"The exit status is 0 if no promise broke, 1 if one broke, and 130 after Ctrl-C. After Ctrl-C, " +
			"sweep prints the counts so far. Sweep also takes all flags of \"parley run PROTOCOL\".\n\n" +
			"Learn more: docs/scenarios/README.md",
		Example: "  parley sweep eig -n 4 -m 1 --faulty 2=random --seeds 1..2000\n" +
			"  parley sweep docs/scenarios/article.yaml --seeds 1..500 --json",
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || args[0] == "--help" || args[0] == "-h" {
				return cmd.Help()
			}
			err := runSweep(cmd, a, args)
			if errors.Is(err, pflag.ErrHelp) {
				return cmd.Help()
			}
			return err
		},
	}
	new(sweepFlags).declare(cmd.Flags()) // for the help
	return cmd
}

// sweepFlags are the flags of a sweep in addition to those of its runs.
type sweepFlags struct {
	seeds   string
	all     bool
	workers int
}

func (o *sweepFlags) declare(fs *pflag.FlagSet) {
	fs.StringVar(&o.seeds, "seeds", "1..1000", "`seeds` of the runs, FIRST..LAST")
	fs.BoolVar(&o.all, "all", false, "continue after a broken promise, and collect all broken promises")
	fs.IntVar(&o.workers, "workers", runtime.NumCPU(), "`number` of runs at a time, 1 to 256")
	if fs.Lookup("json") == nil { // the flags of runs have it too
		fs.Bool("json", false, "print one JSON object")
	}
	console.Prints(fs, "sweep", sweepOutput{})
}

// sweptBy returns what to sweep: a protocol, or a file that names one.
func sweptBy(a *console.App, args []string) (p parley.Protocol, file *form.Scenario, rest []string, err error) {
	name, rest := args[0], args[1:]
	if strings.HasPrefix(name, "-") {
		if name, rest = scenarioOf(args), args; name == "" {
			return p, nil, nil, errors.New("parley sweep: name a protocol or a scenario file before the flags: " +
				"\"parley list\" names all protocols")
		}
	}
	p, err = a.Find(name)
	if err == nil {
		file, err = readScenario(scenarioOf(rest))
		return p, file, rest, err
	}
	if ext := filepath.Ext(name); ext != ".yaml" && ext != ".yml" {
		return p, nil, nil, err
	}
	if file, err = readScenario(name); err == nil {
		p, err = protocolOf(a, file)
	}
	return p, file, rest, err
}

// runSweep reads the command line, which begins with a protocol or a file.
func runSweep(cmd *cobra.Command, a *console.App, args []string) error {
	p, file, rest, err := sweptBy(a, args)
	if err != nil {
		return err
	}
	var own sweepFlags
	fs := pflag.NewFlagSet(p.Name, pflag.ContinueOnError)
	f := newFlags(p, fs)
	own.declare(fs)
	fs.AddFlag(cmd.Flag("color"))
	f.ViewOnly = append(f.ViewOnly, "seeds", "all", "workers", "seed")
	if err := fs.Parse(rest); err != nil {
		return console.ParseError("parley sweep", fs, err)
	}
	if fs.NArg() > 0 {
		return console.Unexpected("parley sweep", fs.Args())
	}
	if err := a.SetFromEnvironment("parley sweep", fs); err != nil {
		return err
	}
	var given []string
	fs.Visit(func(g *pflag.Flag) { given = append(given, g.Name) })
	if err := file.Apply(f.Flags); err != nil {
		return err
	}
	if slices.Contains(given, "seed") {
		return parley.FlagErrorf("seed", "a sweep runs many seeds: use --seeds, as in --seeds 1..1000")
	}
	for _, one := range []string{"show", "tree", "rows", "alive", "svg", "trace", "open"} {
		if slices.Contains(given, one) {
			return parley.FlagErrorf(one, "a sweep shows no single run: use it with the run command that the sweep prints")
		}
	}
	first, last, err := parseSeeds(own.seeds)
	if err != nil {
		return err
	}
	if own.workers < 1 || own.workers > form.MostWorkers {
		return parley.FlagErrorf("workers", "%d threads: allowed are 1 to %d", own.workers, form.MostWorkers)
	}
	// A picture needs few broadcasts, a search many.
	if p.Serves && !f.Plan.Given("workload") && !f.Plan.Given("requests") {
		if err := fs.Set("workload", "{broadcasts: 6, within: 3000}"); err != nil {
			return err
		}
	}
	base, err := f.setup()
	if err == nil && base.Host != "" {
		err = parley.FlagErrorf("host", "a sweep simulates its runs: omit --host")
	}
	if err != nil {
		return file.About(err)
	}
	ctx, release := console.Interruptible(cmd.Context())
	defer release()
	s := &sweepRunner{
		App: a, ctx: ctx, flags: f, base: base, all: own.all, workers: own.workers, first: first, last: last,
	}
	if err := s.run(); err != nil {
		return err
	}
	return s.finish()
}

// finish prints the counts and returns the exit status.
func (s *sweepRunner) finish() (err error) {
	if s.flags.view.JSON {
		err = s.PrintJSON(s.summary())
	} else {
		err = s.print(s.Out)
	}
	switch {
	case len(s.found) > 0:
		return console.End(console.Violated, err)
	case s.ctx.Err() != nil:
		return console.End(console.Interrupted, err)
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
		err = parley.FlagErrorf("seeds", "%q is not FIRST..LAST with LAST at least FIRST: write 1..1000", text)
	}
	return first, last, err
}

// sweepOutput is the JSON output of "parley sweep".
type sweepOutput struct {
	Protocol   string                `json:"protocol"`
	Runs       uint64                `json:"runs"`
	Cut        bool                  `json:"interrupted,omitempty"`
	Seconds    float64               `json:"wall_seconds"`
	Received   uint64                `json:"messages_received"`
	Delivered  uint64                `json:"delivered"`
	Faults     map[string]uint64     `json:"faults"`
	Properties map[string]*run.Tally `json:"properties"`
	Broken     []broken              `json:"broken"`
	// Unrepeatable says that the same seeds can make other runs, because they depend on the speed of programs.
	Unrepeatable bool `json:"unrepeatable,omitempty"`
}

// summary is what --json prints.
func (s *sweepRunner) summary() sweepOutput {
	return sweepOutput{s.base.Protocol.Name, s.Runs, s.ctx.Err() != nil,
		s.wall.Seconds(), s.Received, s.Delivered, s.Faults, s.Properties, s.found, s.unrepeatable()}
}

// print writes the outcome as text.
func (s *sweepRunner) print(w io.Writer) error {
	var b strings.Builder
	width := s.Width(s.flags.view.Width)
	fmt.Fprintf(&b, "%s: seeds %d..%d, %s in %.1f s\n", s.base.Protocol.Name, s.first, s.last,
		prose.Count(s.Runs, "run", "runs"), s.wall.Seconds())
	if s.ctx.Err() != nil {
		fmt.Fprintf(&b, "interrupted after %s of %s seeds\n", prose.Number(s.Runs), prose.Number(s.last-s.first+1))
	}
	fmt.Fprintf(&b, "messages received %s, delivered to the layer above %s\n",
		prose.Number(s.Received), prose.Number(s.Delivered))
	var kinds []string
	// order: sorted below
	for kind, n := range s.Faults {
		if n > 0 {
			kinds = append(kinds, fmt.Sprintf("%s %s", kind, prose.Number(n)))
		}
	}
	slices.Sort(kinds)
	if len(kinds) == 0 {
		kinds = []string{"none"}
	}
	b.WriteString(prose.Fold("faults that occurred: "+strings.Join(kinds, ", "), width) + "\n\n")
	names := lists.Of(s.base.Protocol.Properties, func(q parley.Property) string { return q.Name })
	names = slices.DeleteFunc(slices.Insert(names, 0, run.Sound), func(name string) bool {
		return s.Properties[name] == nil
	})
	wide := 0
	for _, name := range names {
		wide = max(wide, len(name))
	}
	for _, name := range names {
		fmt.Fprintf(&b, "%-*s  %s\n", wide, name, tallied(s.Properties[name]))
	}
	for i, f := range s.found {
		if i == 5 {
			fmt.Fprintf(&b, "\nand %s more\n", prose.Count(uint64(len(s.found)-i), "broken promise", "broken promises"))
			break
		}
		fmt.Fprintf(&b, "\n%s\n%s\n", prose.Fold(fmt.Sprintf("seed %d breaks %s: %s", f.Seed, f.Property, f.How), width),
			input.Command("  again: ", f.Again, width))
		if len(f.Least) > 0 {
			fmt.Fprintln(&b, input.Command("  least: ", f.Least, width))
		}
	}
	if s.unrepeatable() {
		b.WriteString("\n" + prose.Fold(report.Unrepeatable("These runs"), width) + "\n")
	}
	if len(s.found) == 0 {
		b.WriteString("\nno promise was broken" + s.soFar() + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// soFar marks a verdict for which not all seeds were tried.
func (s *sweepRunner) soFar() string {
	if s.ctx.Err() != nil {
		return " so far"
	}
	return ""
}

func tallied(t *run.Tally) string {
	list := func(pairs ...any) string {
		var parts []string
		for pair := range slices.Chunk(pairs, 2) {
			if n := pair[0].(uint64); n > 0 {
				parts = append(parts, prose.Number(n)+" "+pair[1].(string))
			}
		}
		return strings.Join(parts, ", ")
	}
	var parts []string
	for _, part := range []string{
		list(t.Held, "held", t.Broken, "BROKEN"), list(t.Seen, "seen", t.Unseen, "not seen"),
	} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if rest := list(t.NotPromisedHeld, "held", t.NotPromisedBroken, "broken"); rest != "" {
		parts = append(parts, "not promised: "+rest)
	}
	return strings.Join(parts, "; ")
}
