package show

import (
	"io"

	"parley/cli/console"
	"parley/internal/report"
	"parley/trace"
)

// Print writes a run to the standard output, with a heading of its own if heading is not empty, and with end as the
// last line. The error makes a broken promise the exit status.
func Print(a *console.App, r *report.Report, log *trace.Log, flags Flags, heading, end string) error {
	if flags.JSON {
		return Finish(r, a.PrintJSON(r))
	}
	flags.Color = a.Colors()
	v, err := report.NewView(r, log, flags.Options, a.Width(flags.Width), nil)
	if err != nil {
		return err
	}
	v.Heading = heading
	if err := v.Print(a.Out); err != nil {
		return err
	}
	_, err = io.WriteString(a.Out, end)
	return Finish(r, err)
}

// Finish returns the error that makes a broken promise the exit status.
func Finish(r *report.Report, err error) error {
	if r.Violated() {
		return console.End(console.Violated, err)
	}
	return err
}
