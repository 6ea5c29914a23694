package explore

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"parley"
	"parley/cli/console"
	"parley/cli/lab"
	"parley/internal/exploration"
	"parley/internal/form"
)

// flags are the flags of "parley explore PROTOCOL": those of the search, and those of the output.
type flags struct {
	*exploration.Flags
	protocol     string
	set          *pflag.FlagSet
	viewOnly     []string // flags that do not change the search, or that the lab sets
	traceTo, svg string
	json         bool
	width        int
	open         bool
}

func newFlags(p parley.Protocol, fs *pflag.FlagSet) *flags {
	f := &flags{Flags: exploration.New(p, fs), protocol: p.Name, set: fs}
	before := form.Names(fs)
	fs.StringVar(&f.traceTo, "trace", "", "write the run that was found to a `file`; - is standard output")
	fs.StringVar(&f.svg, "svg", "", "draw the run that was found into an SVG `file`; - is standard output")
	fs.BoolVar(&f.json, "json", false, "print one JSON object")
	console.Prints(fs, "explore", exploration.Output{})
	console.Prints(fs, "explore-indistinguishable", exploration.PairsOutput{})
	fs.IntVar(&f.width, "width", 0, "fold the report to this many `columns`, 40 or more (default: the terminal's)")
	console.Common(fs, "width")
	lab.DeclareOpen(fs, &f.open)
	added := slices.DeleteFunc(form.Names(fs), func(n string) bool { return slices.Contains(before, n) })
	f.viewOnly = append(added, "color", "memory", "workers", "indistinguishable")
	return f
}

// setup checks the flags and makes a search from them.
func (f *flags) setup() (*exploration.Search, error) {
	s, err := f.Setup()
	switch {
	case err != nil:
		return nil, err
	case f.width != 0 && f.width < 40:
		return nil, parley.FlagErrorf("width", "%d columns: allowed are 40 or more, or 0 for the width of the terminal",
			f.width)
	case f.Pairs() && f.traceTo != "":
		return nil, parley.FlagErrorf("trace", "a trace holds one run, and --indistinguishable finds several: use --svg, "+
			"which draws all")
	}
	return s, nil
}

// scene returns the form of the search as the lab shows it.
func (f *flags) scene() lab.Scene {
	given := make(map[string]string)
	f.set.Visit(func(g *pflag.Flag) {
		if !slices.Contains(f.viewOnly, g.Name) {
			given[g.Name] = valueOf(g)
		}
	})
	return lab.Search(f.protocol, given)
}

// valueOf returns the value of a flag as a user gives it.
func valueOf(g *pflag.Flag) string {
	if list, is := g.Value.(pflag.SliceValue); is {
		return strings.Join(list.GetSlice(), ",")
	}
	return g.Value.String()
}

// renamed are flags of earlier versions, with what replaces them.
var renamed = map[string]string{
	"alike":  "use --symmetry",
	"detect": "use --crash-notices",
}

// Reserved returns the flags that no protocol may define.
func Reserved() []string {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	newFlags(parley.Protocol{}, fs)
	return form.ReservedNames(fs)
}
