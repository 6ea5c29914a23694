package run

import (
	"slices"

	"github.com/spf13/pflag"

	"parley"
	"parley/cli/show"
	"parley/internal/form"
)

// flags are the flags of "parley run PROTOCOL": those of the run, and those of the output.
type flags struct {
	*form.Flags
	scenario string
	view     show.Flags
	svg      string
	traceTo  string
}

// newFlags declares the flags for one protocol.
func newFlags(p parley.Protocol, fs *pflag.FlagSet) *flags {
	f := &flags{Flags: form.New(p, fs)}
	before := form.Names(fs)
	fs.StringVar(&f.scenario, "scenario", "", "read flags from a YAML `file`; flags of the command line take precedence")
	f.view.Declare(fs)
	fs.StringVar(&f.svg, "svg", "", "draw the run into an SVG `file`; - is standard output")
	fs.StringVar(&f.traceTo, "trace", "", "write the trace to a `file`; - is standard output")
	added := slices.DeleteFunc(form.Names(fs), func(n string) bool { return slices.Contains(before, n) })
	f.ViewOnly = append(append(f.ViewOnly, added...), "color")
	return f
}

// Reserved returns the flags of runs and sweeps that no protocol may define.
func Reserved() []string {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	newFlags(parley.Protocol{}, fs)
	new(sweepFlags).declare(fs)
	return form.ReservedNames(fs)
}

// setup checks the flags and makes a run from them.
func (f *flags) setup() (setup, error) {
	if err := f.view.Check(); err != nil {
		return setup{}, err
	}
	made, err := f.Setup()
	if err != nil {
		return setup{}, err
	}
	s := setup{made}
	return s, f.possible(s)
}
