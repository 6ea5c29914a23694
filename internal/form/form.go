// Package form makes a run from the input of a user: the flags of "parley run", or the keys of a scenario. It reads
// and writes no files, and uses no terminal, so the command line and the web page of "parley lab" share it.
package form

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"parley"
	"parley/internal/lists"
	"parley/internal/naming"
	"parley/internal/scenario"
	"parley/run"
)

// MostWorkers is the maximum number of runs or searches at a time.
const MostWorkers = 256

// ProtocolFlags are the flags of a protocol itself, and the naming of its processes.
type ProtocolFlags struct {
	Names naming.Names
	fs    *pflag.FlagSet
	build func(parley.Naming) (parley.Protocol, error)
}

// Declare adds the flags to fs, and returns the names of the protocol's own flags.
func (f *ProtocolFlags) Declare(p parley.Protocol, fs *pflag.FlagSet) (own []string) {
	f.fs, f.Names = fs, naming.Article
	f.build = func(parley.Naming) (parley.Protocol, error) { return p, nil }
	set := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	if p.Flags != nil {
		f.build = p.Flags(set)
	}
	fs.AddGoFlagSet(set)
	own = Names(fs)
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

// Flags are the flags of a run of one protocol: the protocol's own, and those that determine the run.
type Flags struct {
	ProtocolFlags
	Plan PlanFlags

	protocol   string
	faulty     string
	values     string
	seed       uint64
	signatures string
	beyond     bool
	node       string
	own        []string // the protocol's own flags
	memory     uint64
	host       Host
	// ViewOnly are the flags that do not change the run. Whoever adds others to the same set lists them here.
	ViewOnly []string
}

// New declares the flags for one protocol.
func New(p parley.Protocol, fs *pflag.FlagSet) *Flags {
	f := &Flags{protocol: p.Name, ViewOnly: []string{"memory"}}
	fs.Usage = func() {} // the command prints the help
	f.own = f.Declare(p, fs)
	fs.StringVar(&f.faulty, "faulty", "", "faulty `processes` and their behaviors, as in "+
		"1=twofaced,5=flip,6=crash@r2:3 (default: none)")
	fs.StringVar(&f.values, "values", "1", "initial `values`: one for all processes that propose, or one for "+
		"each, separated by commas")
	fs.Uint64Var(&f.seed, "seed", 1, "seed of all random choices, a `number`")
	fs.StringVar(&f.signatures, "signatures", "ideal", "signatures: `ideal|ed25519`; ideal signatures are "+
		"tokens that nobody can forge")
	fs.BoolVar(&f.beyond, "beyond-bound", false, "allow n and m beyond the bound, where the theorem "+
		"promises nothing")
	fs.Uint64Var(&f.memory, "memory", 4, "refuse a run that needs more than this many `GiB`")
	fs.StringVar(&f.node, "node", "", "run this `command` as each process, in place of the protocol's own code; the "+
		"command reads and writes lines of JSON")
	f.host.declare(fs)
	f.Plan.Declare(fs, scenario.Keys, nil)
	return f
}

// Set returns the set in which the flags are declared.
func (f *Flags) Set() *pflag.FlagSet { return f.fs }

// Names returns the names of all flags of a set.
func Names(fs *pflag.FlagSet) []string {
	var all []string
	fs.VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
	return all
}

// ReservedNames returns the flags of fs that no protocol may define. A protocol may define the keys of a scenario,
// and then its own flag replaces the key's.
func ReservedNames(fs *pflag.FlagSet) []string {
	return slices.DeleteFunc(Names(fs), func(name string) bool { return slices.Contains(scenario.Keys, name) })
}

// args returns the protocol and the flags that were set, without those of ViewOnly: the arguments that repeat the run.
func (f *Flags) args() []string {
	args := []string{f.protocol}
	f.fs.Visit(func(g *pflag.Flag) {
		if !slices.Contains(f.ViewOnly, g.Name) {
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
func DrawnFlags(s run.Spec, k naming.Names) []string {
	faulty := lists.Each(s.Liars().All(), func(id parley.ID) string { return k.Bare(id) + "=" + s.Faulty[id].Name })
	flags := scenario.Flags(s.Plan, s.Protocol, k.Bare)
	if len(faulty) > 0 {
		flags = slices.Insert(flags, 0, "faulty="+strings.Join(faulty, ","))
	}
	return flags
}
