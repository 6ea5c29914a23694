package run

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"parley"
	"parley/cli/console"
	"parley/cli/show"
	"parley/internal/lists"
	"parley/internal/scenario"
	"parley/run"
)

// ProtocolFlags are the flags of a protocol itself, and the naming of its processes.
type ProtocolFlags struct {
	Names console.Names
	fs    *pflag.FlagSet
	build func(parley.Naming) (parley.Protocol, error)
}

// Declare adds the flags to fs, and returns the names of the protocol's own flags.
func (f *ProtocolFlags) Declare(p parley.Protocol, fs *pflag.FlagSet) (own []string) {
	f.fs, f.Names = fs, console.Article
	f.build = func(parley.Naming) (parley.Protocol, error) { return p, nil }
	set := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	if p.Flags != nil {
		f.build = p.Flags(set)
	}
	fs.AddGoFlagSet(set)
	own = flagNames(fs)
	fs.Var(&f.Names, "names", "names of processes: article (P1..Pn) or lecture (p0..pn-1)")
	return own
}

// Protocol returns the protocol that the flags describe.
func (f *ProtocolFlags) Protocol() (parley.Protocol, error) { return f.build(f.Naming) }

// Naming reads process names for the n that the flags set.
func (f *ProtocolFlags) Naming(text string) (parley.ID, error) {
	n := parley.MaxProcesses
	if given := f.fs.Lookup("n"); given != nil {
		if _, err := fmt.Sscan(given.Value.String(), &n); err != nil {
			return 0, err
		}
	}
	return f.Names.Parse(text, n)
}

// flags are the flags of "parley run PROTOCOL": the protocol's own, the run's, and those of the output, which do not
// change the run.
type flags struct {
	ProtocolFlags
	name string

	faulty     string
	values     string
	seed       uint64
	signatures string
	beyond     bool
	scenario   string
	memory     uint64
	host       hostFlags
	plan       PlanFlags

	view     show.Flags
	svg      string
	traceTo  string
	viewOnly []string // the flags that do not change the run
}

// newFlags declares the flags for one protocol.
func newFlags(p parley.Protocol, fs *pflag.FlagSet) *flags {
	f := &flags{name: p.Name}
	fs.Usage = func() {} // the command prints the help
	f.Declare(p, fs)
	fs.StringVar(&f.faulty, "faulty", "", "faulty `processes` and their behaviors, as in "+
		"1=twofaced,5=flip,6=crash@r2:3 (default: none)")
	fs.StringVar(&f.values, "values", "1", "initial `values`: one for all processes that propose, or one for "+
		"each, separated by commas")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of all random choices, a `number`")
	fs.StringVar(&f.signatures, "signatures", "ideal", "signatures: `ideal|ed25519`; ideal signatures are "+
		"tokens that nobody can forge")
	fs.BoolVar(&f.beyond, "beyond-bound", false, "allow n and m beyond the bound, where the theorem "+
		"promises nothing")
	fs.StringVar(&f.scenario, "scenario", "", "read flags from a YAML `file`; flags of the command line take precedence")
	fs.Uint64Var(&f.memory, "memory", 4, "refuse a run that needs more than this many `GiB`")
	f.host.declare(fs)
	f.plan.Declare(fs, scenario.Keys, nil)

	before := flagNames(fs)
	f.view.Declare(fs)
	fs.StringVar(&f.svg, "svg", "", "draw the run into an SVG `file`; - is standard output")
	fs.StringVar(&f.traceTo, "trace", "", "write the trace to a `file`; - is standard output")
	f.viewOnly = slices.DeleteFunc(flagNames(fs), func(n string) bool { return slices.Contains(before, n) })
	f.viewOnly = append(f.viewOnly, "scenario", "memory", "color")
	return f
}

func flagNames(fs *pflag.FlagSet) []string {
	var all []string
	fs.VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
	return all
}

// ReservedNames returns the flags of fs that no protocol may define. A protocol may define the keys of a scenario,
// and then its own flag replaces the key's.
func ReservedNames(fs *pflag.FlagSet) []string {
	return slices.DeleteFunc(flagNames(fs), func(name string) bool { return slices.Contains(scenario.Keys, name) })
}

// Reserved returns the flags of runs and sweeps that no protocol may define.
func Reserved() []string {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	newFlags(parley.Protocol{}, fs)
	new(sweepFlags).declare(fs)
	return ReservedNames(fs)
}

// args returns the protocol and the flags that were set, without those of the output: the arguments that repeat the
// run.
func (f *flags) args() []string {
	args := []string{f.name}
	f.fs.Visit(func(g *pflag.Flag) {
		if !slices.Contains(f.viewOnly, g.Name) {
			args = append(args, "--"+g.Name+"="+g.Value.String())
		}
	})
	return args
}

// Dashed returns flags NAME=VALUE as arguments.
func Dashed(flags []string) []string {
	return lists.Of(flags, func(flag string) string { return "--" + flag })
}

// DrawnFlags returns the faulty processes of a run and its plan as flags NAME=VALUE. The plan must leave nothing
// open.
func DrawnFlags(s run.Spec, k console.Names) []string {
	faulty := lists.Each(s.Liars().All(), func(id parley.ID) string { return k.Bare(id) + "=" + s.Faulty[id].Name })
	flags := scenario.Flags(s.Plan, s.Protocol, k.Bare)
	if len(faulty) > 0 {
		flags = slices.Insert(flags, 0, "faulty="+strings.Join(faulty, ","))
	}
	return flags
}
