// Package show prints a finished run of any host (simulator, explorer or cluster): its events and its verdicts, as
// text and as JSON.
package show

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"parley"
	"parley/cli/console"
	"parley/cli/lab"
	"parley/internal/nearest"
	"parley/internal/report"
)

// Flags select what of a run is shown, and how.
type Flags struct {
	report.Options
	Width int  // columns to fold to; 0: the terminal's
	JSON  bool // print the report as JSON, and no view
	Open  bool // then show the run in the lab
}

// Declare adds the flags to fs.
func (v *Flags) Declare(fs *pflag.FlagSet) {
	fs.StringSliceVar(&v.Show, "show", nil,
		"`parts` to show, separated by commas (default: all except very long parts): "+strings.Join(report.Sections, "|"))
	fs.StringVar(&v.Tree, "tree", "", "`process` whose information tree is shown (default: the first correct lieutenant)")
	fs.IntVar(&v.Rows, "rows", 12, "maximum `number` of messages to show for each sender; further messages "+
		"are only counted")
	fs.BoolVar(&v.Beats, "alive", false, "also show messages that only report that their sender is alive")
	fs.IntVar(&v.Width, "width", 0, "fold the report to this many `columns`, 40 or more (default: the terminal's)")
	console.Common(fs, "width")
	fs.BoolVar(&v.JSON, "json", false, "print one JSON object")
	console.Prints(fs, "run", report.Report{})
	lab.DeclareOpen(fs, &v.Open)
}

// Check returns an error if a flag has a value that is never allowed.
func (v Flags) Check() error {
	for _, s := range v.Show {
		if !slices.Contains(report.Sections, s) {
			return parley.FlagErrorf("show", "unknown part %q: %s", s, nearest.Names(s, report.Sections))
		}
	}
	if v.Width != 0 && v.Width < 40 {
		return parley.FlagErrorf("width", "%d columns: allowed are 40 or more, or 0 for the width of the terminal", v.Width)
	}
	if v.Rows < 1 {
		return parley.FlagErrorf("rows", "%d is too small: at least 1 is allowed", v.Rows)
	}
	return nil
}
