// Package run implements "parley run" and "parley sweep": it makes runs from flags and scenario files, in the
// simulator or between real processes.
package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"parley"
	"parley/cli/console"
	"parley/cli/lab"
	"parley/cli/show"
	"parley/faulty"
	"parley/internal/form"
	"parley/internal/lists"
	"parley/internal/report"
	"parley/trace"
)

// Command is "parley run".
func Command(a *console.App) *cobra.Command {
	run := &cobra.Command{
		Use:   "run PROTOCOL | run --scenario FILE | run --replay FILE",
		Short: "Run a protocol once and show what happened",
		Long: "Run runs a protocol once, and shows what happened and which promises held. The command line " +
			"or a scenario file names the protocol. Run changes only the files of --trace and --svg. The " +
			"exit status is 0 if no promise broke, 1 if one broke, and 2 for bad input. It is 3 if a run " +
			"with --host cluster did not finish within its time limit.\n\n" +
			"By default the simulator makes the run: the same flags always make the same run. With --host " +
			"cluster, real processes on this computer make the run, connected by mutual TLS. A crash then " +
			"kills a process, and a faulty process itself falsifies or omits messages.\n\n" +
			"With --open, run also shows the run in the lab, and ends after Ctrl-C. The button " +
			"\"Copy link\" of the page copies a link to exactly this run. \"parley lab --help\" says which " +
			"computers reach the page. The exit status does not change.\n\n" +
			"With --scenario the flags come from a YAML file. Flags of the command line take " +
			"precedence.\n\n" +
			"With --replay, run reads a trace, and gives the correct processes the inputs that the trace " +
			"recorded. The exit status is 2 if the processes act differently than in the trace. Use --replay for a run " +
			"that \"parley explore\" found: no seed makes such a run.\n\n" +
			"Learn more: docs/scenarios/README.md",
		Example: "  parley run eig -n 7 -m 2 --faulty 1=twofaced,5=flip --seed 42\n" +
			"  parley run eig -n 4 -m 1 --faulty 3=twofaced --host cluster\n" +
			"  parley run eig -n 4 -m 1 --faulty 3=twofaced --open\n" +
			"  parley run --scenario docs/scenarios/article.yaml --show verdict",
		// The protocol that the file names determines which flags exist.
		DisableFlagParsing: true,
		Args:               cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && args[0] == "--" {
				args = args[1:] // see Arguments
			}
			switch {
			case slices.ContainsFunc(args, isReplay):
				return replayTrace(a, cmd, args)
			case len(args) > 0 && (args[0] == "--help" || args[0] == "-h"):
				return cmd.Help()
			case len(args) > 0 && args[0] != "" && args[0][0] != '-':
				_, err := a.Find(args[0])
				return err
			}
			return runFile(a, cmd, args)
		},
	}
	for _, p := range a.Protocols {
		run.AddCommand(protocolCommand(a, p))
	}
	run.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedName() == "replay" {
			return parley.FlagErrorf("replay", "the trace names its protocol: write parley run --replay FILE")
		}
		return console.UnknownFlag(cmd, err)
	})
	return run
}

func protocolCommand(a *console.App, p parley.Protocol) *cobra.Command {
	behaviors := lists.Of(faulty.Named(), func(b faulty.Behavior) string { return b.Name })
	crashes := " crash@rR (in round R), crash@rR:K (after K of its sends), or crash@DURATION."
	if p.Timing != parley.Synchronous {
		crashes = " or crash@DURATION (1 ns is a tick in the simulator)."
	}
	cmd := &cobra.Command{
		Use:   p.Name,
		Short: p.Title,
		Long: fmt.Sprintf("Run runs this protocol once and shows what happened: %s.\n\nTiming: %s. Faults: %s. "+
			"Source: %s.\n\n"+
			"The behaviors of --faulty are %s,%s\n\n\"parley run --help\" explains exit statuses, scenarios, and replays.",
			p.Title, p.Timing, p.Faults, p.Paper, strings.Join(behaviors, ", "), crashes),
		Example: "  parley run " + p.Name + example(p),
		Args:    console.NoArgs,
	}
	f := newFlags(p, cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		s, err := readScenario(f.scenario)
		if err != nil {
			return err
		}
		return executeFile(cmd.Context(), a, s, f)
	}
	return cmd
}

// example returns flags that show something of a protocol: with a liar if the protocol tolerates one.
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

// Arguments handles a flag whose value is also the name of a protocol, as in "parley run --scenario FILE --form
// vector". If no protocol follows "run", it inserts "--" so that run gets all arguments unparsed.
func Arguments(args []string) []string {
	if len(args) < 2 || args[0] != "run" || args[1] == "" || args[1][0] != '-' {
		return args
	}
	return append([]string{"run", "--"}, args[1:]...)
}

// scenarioOf returns the file of --scenario, or "".
func scenarioOf(args []string) string {
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--scenario="); ok {
			return value
		} else if arg == "--scenario" && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// protocolOf returns the protocol that a file names.
func protocolOf(a *console.App, s *form.Scenario) (parley.Protocol, error) {
	name, err := s.Protocol()
	if err != nil {
		return parley.Protocol{}, err
	}
	p, err := a.Find(name)
	if err != nil {
		err = s.At("protocol", err)
	}
	return p, err
}

// runFile runs the protocol that the file of --scenario names.
func runFile(a *console.App, cmd *cobra.Command, args []string) error {
	file := scenarioOf(args)
	if file == "" {
		return console.NoProtocol(cmd)
	}
	s, err := readScenario(file)
	if err != nil {
		return err
	}
	p, err := protocolOf(a, s)
	if err != nil {
		return err
	}
	f := newFlags(p, pflag.NewFlagSet(p.Name, pflag.ContinueOnError))
	f.Set().AddFlag(cmd.Flag("color"))
	switch err := f.Set().Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		one, _, err := cmd.Find([]string{p.Name})
		if err != nil {
			return err
		}
		return one.Help()
	case err != nil:
		return console.ParseError("parley run "+p.Name, f.Set(), err)
	case f.Set().NArg() > 0:
		return console.Unexpected("parley run", f.Set().Args())
	}
	if err := a.SetFromEnvironment("parley run", f.Set()); err != nil {
		return err
	}
	return executeFile(cmd.Context(), a, s, f)
}

// executeFile runs with the file's flags. An error about a flag that the
// file sets names the line.
func executeFile(ctx context.Context, a *console.App, s *form.Scenario, f *flags) error {
	if err := s.Apply(f.Flags); err != nil {
		return err
	}
	return s.About(execute(ctx, a, f))
}

// execute makes the run, writes the output files, prints the report, and opens the lab.
func execute(ctx context.Context, a *console.App, f *flags) error {
	traceTo, svg := console.OutputFile{Flag: "trace", Name: f.traceTo}, console.OutputFile{Flag: "svg", Name: f.svg}
	out, err := a.ReportTo(f.view.JSON, traceTo, svg)
	if err != nil {
		return err
	}
	s, err := f.setup()
	if err != nil {
		return err
	}
	stop := a.Busy()
	log, facts, tree, err := s.run()
	stop()
	if err != nil {
		return err
	}
	r := report.New(s.Run, log, facts)
	f.view.Color = a.Colors()
	v, err := report.NewView(r, log, f.view.Options, a.Width(f.view.Width), tree)
	if err != nil {
		return err
	}
	if err := a.WriteTrace(f.traceTo, s.Header(facts), log); err != nil {
		return err
	}
	if f.svg != "" {
		if err := a.WriteFile(svg, v.SVG()); err != nil {
			return err
		}
	}
	if f.view.JSON {
		err = a.PrintJSON(r)
	} else {
		err = v.Print(out)
	}
	if err = show.Finish(r, err); !f.view.Open {
		return err
	}
	return lab.Open(ctx, a, s.scene(log, facts, f.traceTo), err)
}

// scene returns a run as the lab shows it: by its flags, or by its trace if flags do not repeat it. file is where the
// trace is.
func (s setup) scene(log *trace.Log, facts trace.Facts, file string) lab.Scene {
	if made, ok := lab.Repeated(s.Args, log.Hash()); ok && s.Host == "" && len(s.Node) == 0 {
		return made
	}
	return lab.Recorded(s.Header(facts), log, file)
}
