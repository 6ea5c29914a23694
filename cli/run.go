package cli

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley"
	"parley/faulty"
	"parley/internal/bench"
	"parley/internal/draw"
	"parley/internal/scenario"
	"parley/sim"
	"parley/trace"
)

// runFlags are the flags of "parley run PROTOCOL": the protocol's own, the
// run's, and those of the output, which change nothing of the run.
type runFlags struct {
	name  string
	fs    *pflag.FlagSet
	build func(parley.Naming) (parley.Protocol, error)

	names      names
	faulty     string
	values     string
	seed       uint64
	signatures string
	beyond     bool
	scenario   string
	memory     uint64
	plan       planFlags

	view     viewFlags
	svg      string
	traceTo  string
	json     bool
	viewOnly []string // the names of the flags that change nothing of the run
}

// viewFlags say what of a run is shown, and how.
type viewFlags struct {
	show  []string
	tree  string
	rows  int
	beats bool
	width int
}

func (v *viewFlags) declare(fs *pflag.FlagSet) {
	fs.StringSliceVar(&v.show, "show", nil,
		"what to show, of "+strings.Join(sections, ", ")+" (default: all that is not too much)")
	fs.StringVar(&v.tree, "tree", "", "whose information tree to show (default: the first correct lieutenant's)")
	fs.IntVar(&v.rows, "rows", 12, "how many messages of a sender to show before the rest is counted")
	fs.BoolVar(&v.beats, "alive", false, "draw also the messages that only show that their sender is alive")
	fs.IntVar(&v.width, "width", 0, "columns to fold to (default: the terminal's)")
}

// newRunFlags declares the flags for one protocol.
func newRunFlags(p parley.Protocol, fs *pflag.FlagSet) *runFlags {
	f := &runFlags{name: p.Name, fs: fs, names: article}
	own := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	f.build = func(parley.Naming) (parley.Protocol, error) { return p, nil }
	if p.Flags != nil {
		f.build = p.Flags(own)
	}
	fs.AddGoFlagSet(own)
	fs.Var(&f.names, "names", "call processes P1..Pn or p0..pn-1")
	fs.StringVar(&f.faulty, "faulty", "", "who is faulty and how, as in 1=twofaced,5=flip,6=crash@r2:3")
	fs.StringVar(&f.values, "values", "1", "initial values: one for all, or one a process, with commas between")
	fs.Uint64Var(&f.seed, "seed", 1, "the seed of all that is drawn")
	fs.StringVar(&f.signatures, "signatures", "ideal", "ideal tokens, or ed25519")
	fs.BoolVar(&f.beyond, "beyond-bound", false, "run although the theorem promises nothing")
	fs.StringVar(&f.scenario, "scenario", "", "read flags from a YAML `file`; those given here come first")
	fs.Uint64Var(&f.memory, "memory", 4, "refuse a run that needs more than this many `GiB`")
	f.plan.declare(fs)

	before := flagNames(fs)
	f.view.declare(fs)
	fs.StringVar(&f.svg, "svg", "", "draw the messages and the tree into an SVG `file`")
	fs.StringVar(&f.traceTo, "trace", "", "write the trace to a `file`")
	fs.BoolVar(&f.json, "json", false, "print one JSON object")
	f.viewOnly = slices.DeleteFunc(flagNames(fs), func(n string) bool { return slices.Contains(before, n) })
	f.viewOnly = append(f.viewOnly, "scenario", "memory")
	return f
}

func flagNames(fs *pflag.FlagSet) []string {
	var all []string
	fs.VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
	return all
}

// setup is a run that can be made.
type setup struct {
	protocol parley.Protocol
	names    names
	faulty   map[parley.ID]faulty.Behaviour
	values   map[parley.ID][]byte
	seed     uint64
	sign     func(seed uint64) sim.Signer
	plan     scenario.Plan
	args     []string // what makes the same run again

	signer sim.Signer    // of the seed
	drawn  scenario.Plan // the plan, with what it leaves open drawn from the seed
}

// reseed draws from another seed what is to be drawn.
func (s *setup) reseed(seed uint64) {
	s.seed, s.signer, s.drawn = seed, s.sign(seed), s.plan.Draw(s.protocol, seed)
}

// naming reads process names for the n that the flags say.
func (f *runFlags) naming(text string) (parley.ID, error) {
	n := parley.MaxProcesses
	if given := f.fs.Lookup("n"); given != nil {
		if _, err := fmt.Sscan(given.Value.String(), &n); err != nil {
			return 0, err
		}
	}
	return f.names.parse(text, n)
}

// setup checks the flags and makes a run of them.
func (f *runFlags) setup() (setup, error) {
	s := setup{names: f.names, seed: f.seed}
	if err := f.view.check(); err != nil {
		return s, err
	}
	p, err := f.build(f.naming)
	if err != nil {
		return s, err
	}
	s.protocol = p
	if p.Bound != nil && !f.beyond {
		if err := p.Bound(p.N, p.M); err != nil {
			return s, &parley.FlagError{Flag: "m", Err: fmt.Errorf("%w; --beyond-bound runs it all the same", err)}
		}
	}
	if need := memory(p); need > f.memory<<30 {
		return s, &parley.FlagError{Flag: "n", Err: fmt.Errorf("%d processes with m = %d need about %s of memory, "+
			"more than --memory %d GiB; %s", p.N, p.M, gigabytes(need), f.memory, smaller(p.N, p.M))}
	}
	if s.faulty, err = parseFaulty(f.faulty, f.names, p.N); err != nil {
		return s, &parley.FlagError{Flag: "faulty", Err: err}
	}
	if s.values, err = parseValues(f.values, p.Proposers); err != nil {
		return s, &parley.FlagError{Flag: "values", Err: err}
	}
	switch f.signatures {
	case "ideal":
		s.sign = sim.Ideal
	case "ed25519":
		s.sign = func(seed uint64) sim.Signer { return sim.Ed25519(seed, p.N) }
	default:
		return s, &parley.FlagError{Flag: "signatures", Err: fmt.Errorf("%q: allowed are ideal and ed25519", f.signatures)}
	}
	if s.plan, err = f.plan.plan(p, f.naming); err != nil {
		return s, err
	}
	s.reseed(f.seed)
	for _, c := range s.plan.Crashes {
		if _, bad := s.faulty[c.At]; bad {
			return s, &parley.FlagError{Flag: "crashes", Err: fmt.Errorf("%s is faulty already", s.names.full(c.At))}
		}
	}
	s.args = f.args()
	return s, nil
}

// memory is about what a run holds: what the protocol says, and the log with an
// event for each frame that is sent and each that arrives.
func memory(p parley.Protocol) uint64 {
	const event = 128
	var need parley.Traffic
	if p.Cost != nil {
		frames := uint64(p.Cost(p.N, p.M).Rounds * p.N * p.N)
		need = parley.Traffic{Messages: 2 * event}.Times(frames)
	}
	if p.Memory != nil {
		need = need.Plus(parley.Traffic{Messages: p.Memory()})
	}
	return need.Messages
}

// smaller says what fits where a machine a process does not.
func smaller(n, m int) string {
	fits := bench.Spec{Protocol: "eig", Engine: "depthfirst", N: n, M: m, Workers: 1, Signatures: "ideal"}
	if fits.Check() == nil {
		return fmt.Sprintf("\"parley bench eig -n %d -m %d --engine depthfirst\" runs the whole system in 32 MiB", n, m)
	}
	return "phaseking agrees with few messages, and \"parley bench phaseking\" keeps no log"
}

func gigabytes(b uint64) string {
	if b == math.MaxUint64 {
		return "countless GiB"
	}
	return fmt.Sprintf("%.1f GiB", float64(b)/(1<<30))
}

// args returns the protocol and the flags that were set, without those of the
// output: what makes the same run again.
func (f *runFlags) args() []string {
	args := []string{f.name}
	f.fs.Visit(func(g *pflag.Flag) {
		if !slices.Contains(f.viewOnly, g.Name) {
			args = append(args, "--"+g.Name+"="+g.Value.String())
		}
	})
	return args
}

// parseFaulty reads 1=twofaced,5=flip.
func parseFaulty(text string, k names, n int) (map[parley.ID]faulty.Behaviour, error) {
	out := make(map[parley.ID]faulty.Behaviour)
	if text == "" {
		return out, nil
	}
	for _, part := range strings.Split(text, ",") {
		who, how, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("%q: PROCESS=BEHAVIOUR was expected, as in 1=twofaced", part)
		}
		id, err := k.parse(who, n)
		if err != nil {
			return nil, err
		}
		if _, twice := out[id]; twice {
			return nil, fmt.Errorf("%s is named twice", k.full(id))
		}
		if out[id], err = faulty.Parse(how); err != nil {
			return nil, err
		}
	}
	if len(out) == n {
		return nil, errors.New("all processes are faulty: nothing is asked of any")
	}
	return out, nil
}

// parseValues gives every proposer its initial value.
func parseValues(text string, proposers parley.Set) (map[parley.ID][]byte, error) {
	const longest = 1024
	parts := strings.Split(text, ",")
	if len(parts) != 1 && len(parts) != proposers.Len() {
		return nil, fmt.Errorf("%s: allowed are 1, or %d for the processes that propose",
			draw.Count(uint64(len(parts)), "value", "values"), proposers.Len())
	}
	out := make(map[parley.ID][]byte)
	i := 0
	for id := range proposers.All() {
		v := parts[min(i, len(parts)-1)]
		if len(v) > longest {
			return nil, fmt.Errorf("a value of %d bytes: allowed are %d", len(v), longest)
		}
		out[id] = []byte(v)
		i++
	}
	return out, nil
}

// options are those of the run.
func (s setup) options() sim.Options {
	opt := s.drawn.Options(s.protocol, s.seed)
	opt.Faulty, opt.Signer = s.faulty, s.signer
	var proposals []sim.Request
	for id := range s.protocol.Proposers.All() {
		proposals = append(proposals, sim.Request{At: id, Msg: parley.Msg{Kind: parley.Propose, Body: s.values[id]}})
	}
	opt.Requests = append(proposals, opt.Requests...)
	return opt
}

// simulate makes the run.
func (s setup) simulate() (*sim.Sim, *trace.Log) {
	log := &trace.Log{Keep: true}
	opt := s.options()
	opt.Log = log
	return sim.Run(opt), log
}

// factsOf tells what no event of a run does.
func factsOf(done *sim.Sim) trace.Facts {
	a := done.Assumptions()
	return trace.Facts{Over: done.History.Over, Network: a.Network, Processes: a.Processes}
}

// assumptions are the circumstances of a run, for its verdict.
func (s setup) assumptions(h *parley.History, facts trace.Facts) parley.Assumptions {
	p := s.protocol
	a := parley.Assumptions{
		N: p.N, M: p.M, Faulty: h.Faulty.Len(), Network: facts.Network, Processes: facts.Processes,
	}
	// order: the worst is looked for
	for _, how := range s.faulty {
		a.Worst = max(a.Worst, how.Model)
	}
	if p.Proposers.Len() == 1 {
		a.SourceFaulty = p.Proposers.Minus(h.Faulty) == parley.Set{}
	}
	return a
}

// down are the processes that nothing is promised to: those that are faulty and
// those that crash for good.
func (s setup) down() parley.Set {
	var all parley.Set
	// order: a set has none
	for id := range s.faulty {
		all.Add(id)
	}
	for _, c := range s.drawn.Crashes {
		if c.Back == 0 {
			all.Add(c.At)
		}
	}
	return all
}

func (s setup) header(facts trace.Facts) trace.Header {
	h := trace.Header{
		Protocol: s.protocol.Name, Args: s.args, N: s.protocol.N, M: s.protocol.M, Seed: s.seed, Names: string(s.names),
		Facts: facts,
	}
	for id := range s.down().All() {
		h.Faulty = append(h.Faulty, int(id))
	}
	return h
}

// run is "parley run".
func (a *app) run() *cobra.Command {
	run := &cobra.Command{
		Use:   "run PROTOCOL | run --scenario FILE",
		Short: "Run a protocol in the simulator and show what happened",
		Long: "Run runs a protocol, named here or in a scenario file, in the simulator and shows what happened.\n" +
			"With --scenario all flags of the file's protocol may follow; they come before those of the file.",
		Example: "  parley run eig -n 7 -m 2 --faulty 1=twofaced,5=flip --seed 42\n" +
			"  parley run --scenario docs/scenarios/article.yaml --show verdict",
		// The flags are those of the protocol, which the file names.
		DisableFlagParsing: true,
		Args:               cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) > 0 && (args[0] == "--help" || args[0] == "-h"):
				return cmd.Help()
			case len(args) > 0 && args[0] != "" && args[0][0] != '-':
				_, err := a.find(args[0])
				return err
			}
			return a.runScenario(cmd, args)
		},
	}
	for _, p := range a.protocols {
		run.AddCommand(a.runOne(p))
	}
	return run
}

func (a *app) runOne(p parley.Protocol) *cobra.Command {
	var behaviours []string
	for _, b := range faulty.Named() {
		behaviours = append(behaviours, b.Name)
	}
	cmd := &cobra.Command{
		Use:   p.Name,
		Short: p.Title,
		Long: fmt.Sprintf("%s\n\nTiming: %s. Faults: %s. Source: %s.\nA faulty process is %s,\n"+
			"crash@rR (in round R), crash@rR:K (after K sends of it) or crash@DURATION.",
			p.Title, p.Timing, p.Faults, p.Paper, strings.Join(behaviours, ", ")),
		Example: "  parley run " + p.Name + example(p),
		Args:    cobra.NoArgs,
	}
	f := newRunFlags(p, cmd.Flags())
	cmd.RunE = func(*cobra.Command, []string) error {
		if f.scenario == "" {
			return a.execute(f)
		}
		s, err := readScenario(f.scenario)
		if err != nil {
			return err
		}
		return a.executeScenario(s, f)
	}
	return cmd
}

// example are flags that show something of a protocol: a liar where there may be one.
func example(p parley.Protocol) string {
	switch {
	case p.Timing == parley.Synchronous && p.Faults <= parley.OmissionFaults:
		return " --faulty 2=omit-send --seed 42 --show messages,verdict"
	case p.Timing == parley.Synchronous:
		return " --faulty 2=twofaced --seed 42 --show messages,verdict"
	case p.Faults <= parley.OmissionFaults:
		return " --crashes '[{process: 2, when: 1600}]' --seed 42 --show spacetime,verdict"
	}
	return " --faulty 2=twofaced --seed 42 --show spacetime,verdict"
}

// runScenario runs the protocol that the file of --scenario names.
func (a *app) runScenario(cmd *cobra.Command, args []string) error {
	file := ""
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--scenario="); ok {
			file = value
		} else if arg == "--scenario" && i+1 < len(args) {
			file = args[i+1]
		}
	}
	if file == "" {
		return oneOf(cmd, nil)
	}
	s, err := readScenario(file)
	if err != nil {
		return err
	}
	name, err := s.protocol()
	if err != nil {
		return err
	}
	p, err := a.find(name)
	if err != nil {
		return s.at("protocol", err)
	}
	f := newRunFlags(p, pflag.NewFlagSet(name, pflag.ContinueOnError))
	if err := f.fs.Parse(args); err != nil {
		return err
	}
	if f.fs.NArg() > 0 {
		return fmt.Errorf("parley run: %q was not expected", f.fs.Arg(0))
	}
	return a.executeScenario(s, f)
}

// executeScenario runs with the file's flags. An error about a flag that the
// file sets names the line.
func (a *app) executeScenario(s *scenarioFile, f *runFlags) error {
	if err := s.apply(f); err != nil {
		return err
	}
	return s.about(a.execute(f))
}

// execute makes the run, writes what is to be written and prints the report.
func (a *app) execute(f *runFlags) error {
	s, err := f.setup()
	if err != nil {
		return err
	}
	stop := a.busy()
	done, log := s.simulate()
	facts := factsOf(done)
	r := newReport(s, log, facts)
	stop()
	v, err := newView(r, s, log, f.view, a.width(f.view.width), func(id parley.ID) parley.Tree {
		return s.protocol.Tree(done.Machine(id))
	})
	if err != nil {
		return err
	}
	if f.traceTo != "" {
		var b bytes.Buffer
		if err := trace.Write(&b, s.header(facts), log); err != nil {
			return err
		}
		if err := os.WriteFile(f.traceTo, b.Bytes(), 0o644); err != nil {
			return &parley.FlagError{Flag: "trace", Err: err}
		}
	}
	if f.svg != "" {
		if err := os.WriteFile(f.svg, v.svg(), 0o644); err != nil {
			return &parley.FlagError{Flag: "svg", Err: err}
		}
	}
	if f.json {
		return r.finish(r.writeJSON(a.out))
	}
	return r.finish(v.print(a.out))
}
