package run

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley"
	"parley/cli/console"
	"parley/cli/lab"
	"parley/cli/show"
	"parley/internal/draw/prose"
	"parley/internal/form"
	"parley/internal/input"
	"parley/internal/report"
	"parley/sim"
	"parley/trace"
)

func isReplay(arg string) bool { return arg == "--replay" || strings.HasPrefix(arg, "--replay=") }

// replayTrace replays a trace and shows the run.
func replayTrace(a *console.App, cmd *cobra.Command, args []string) error {
	fs := pflag.NewFlagSet("replay", pflag.ContinueOnError)
	fs.Usage = func() {}
	file := fs.String("replay", "", "the trace")
	var view show.Flags
	view.Declare(fs)
	fs.AddFlag(cmd.Flag("color"))
	if err := fs.Parse(args); err != nil {
		return console.ParseError("parley run", fs, err)
	}
	if fs.NArg() > 0 {
		return parley.FlagErrorf("replay", "unexpected argument %q: omit it, because the trace names its protocol", fs.Arg(0))
	}
	if err := a.SetFromEnvironment("parley run", fs); err != nil {
		return err
	}
	if *file == "" {
		return parley.FlagErrorf("replay", "the name of the file is missing: name a trace that run --trace FILE wrote")
	}
	if err := view.Check(); err != nil {
		return err
	}
	h, s, log, err := ReadTrace(a, *file)
	if err != nil {
		return err
	}
	if s.Host != "" {
		return parley.FlagErrorf("replay", "%s is a trace of real processes, whose timing cannot be repeated: "+
			"use parley trace show", *file)
	}
	if err := notReplayed(s, *file); err != nil {
		return err
	}
	again := sim.Replay{
		Protocol: s.Protocol, Faulty: s.Liars(), Signer: s.Signer(), Clocks: s.Plan.Clocks, Stepped: h.Facts.Stepped,
	}
	steps, err := again.Run(log.Events)
	if err != nil {
		return fmt.Errorf("%s: the repeated run differs from the trace: %w", *file, err)
	}
	s.Args = []string{"--replay=" + *file}
	err = show.Print(a, report.New(s, log, h.Facts), log, view, "", fmt.Sprintf(
		"replayed: %s of correct processes, each with what the trace says came of it\n",
		prose.Count(uint64(steps), "step", "steps")))
	if !view.Open {
		return err
	}
	return lab.Open(cmd.Context(), a, lab.Recorded(h, log, *file), err)
}

// ReadTrace reads a trace and reconstructs its run.
func ReadTrace(a *console.App, file string) (trace.Header, form.Run, *trace.Log, error) {
	in, err := os.Open(file)
	if err != nil {
		return trace.Header{}, form.Run{}, nil, console.PathError(err)
	}
	defer in.Close()
	h, log, err := trace.Read(in)
	if err != nil {
		return h, form.Run{}, nil, console.InTrace(file, err)
	}
	s, err := form.Remake(a.Protocols, h)
	if err != nil {
		err = &input.FileError{File: file, Line: 1, Err: err}
	}
	return h, s, log, err
}
