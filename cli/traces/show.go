// Package traces implements "parley trace", which shows traces, and "parley audit", which judges the traces of
// nodes.
package traces

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/console"
	"parley/cli/lab"
	"parley/cli/run"
	"parley/cli/show"
	"parley/internal/draw/prose"
	"parley/internal/draw/reading"
	"parley/internal/form"
	"parley/internal/input"
	"parley/internal/report"
	"parley/trace"
)

// Command is "parley trace".
func Command(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use: "trace", Short: "Show and compare traces",
		Long: "Trace shows and compares traces. A run writes a trace with --trace FILE. A node writes " +
			"traces if its configuration has the key traces. The command changes no file.",
		Args: cobra.ArbitraryArgs, RunE: console.OneOf,
		Example: "  parley run eig --trace run.jsonl\n  parley trace show run.jsonl\n" +
			"  parley trace diff run.jsonl run.jsonl",
	}
	var view show.Flags
	var nodes nodeFlags
	show := &cobra.Command{
		Use:   "show TRACE...",
		Short: "Show a trace as \"parley run\" shows a run",
		Long: "Show prints the trace of a run as \"parley run\" prints the run. If nodes of a cluster wrote " +
			"the traces, show merges the traces and shows one machine: one instance of a protocol. If that " +
			"machine is a stream of agreements, show prints one slot: one agreement of the stream. A TRACE " +
			"is a file, or a folder with .jsonl files. With --open, show also opens the traces in the " +
			"lab, and ends after Ctrl-C. The exit status is 0 if no promise broke, 1 if one " +
			"broke, and 2 if a trace cannot be read.",
		Example: "  parley run eig --trace run.jsonl\n  parley trace show run.jsonl --show messages\n" +
			"  parley trace show testdata/traces --machine agree/eig/1/1 --slot 2",
		Args: console.Args(1, 0, "at least one TRACE is needed"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return showTraces(cmd.Context(), a, args, view, nodes)
		},
	}
	view.Declare(show.Flags())
	show.Flags().StringVar(&nodes.machine, "machine", "", "`machine` to show, for traces of nodes, such as "+
		"group/news")
	show.Flags().Uint64Var(&nodes.slot, "slot", 0, "`number` of the slot to show, for a stream of "+
		"agreements (default: the first slot that was decided)")
	cmd.AddCommand(show, diffCommand(a))
	return cmd
}

// showTraces shows a trace of a run, or traces of nodes.
func showTraces(ctx context.Context, a *console.App, args []string, view show.Flags, nodes nodeFlags) error {
	if err := view.Check(); err != nil {
		return err
	}
	if info, err := os.Stat(args[0]); len(args) > 1 || err == nil && info.IsDir() || ofNode(args[0]) {
		traces, err := console.ReadTraces(args)
		if err != nil {
			return err
		}
		return showNodes(ctx, a, traces, view, nodes)
	}
	for flag, given := range map[string]bool{"machine": nodes.machine != "", "slot": nodes.slot != 0} { // order: one error
		if given {
			return parley.FlagErrorf(flag, "%s is not the trace of a node: omit the flag", args[0])
		}
	}
	return showTrace(ctx, a, args[0], view)
}

// maxHeader is the longest header of a node's trace that ofNode finds, in bytes.
const maxHeader = 1 << 20

// ofNode reports whether a file begins like the trace of a node.
func ofNode(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false // the later reader reports the error
	}
	defer f.Close()
	var h trace.Header
	return json.NewDecoder(io.LimitReader(f, maxHeader)).Decode(&h) == nil && h.Node != nil
}

func showTrace(ctx context.Context, a *console.App, file string, flags show.Flags) error {
	h, s, log, err := run.ReadTrace(a, file)
	if err != nil {
		return err
	}
	if h.Facts.Explored { // no seed repeats it
		s.Args = []string{"--replay=" + file}
	}
	if err = show.Print(a, report.New(s, log, h.Facts), log, flags, "", ""); !flags.Open {
		return err
	}
	return lab.Open(ctx, a, lab.Recorded(h, log, file), err)
}

// diffCommand is "parley trace diff".
func diffCommand(a *console.App) *cobra.Command {
	context := 5
	cmd := &cobra.Command{
		Use:   "diff FILE FILE",
		Short: "Show where two traces diverge",
		Long: "Diff prints the first event in which two traces differ, and some events before and after " +
			"this event. The exit status is 0 if the traces are the same, 1 if they differ, and 2 if a " +
			"trace cannot be read.",
		Example: "  parley trace diff run.jsonl run.jsonl",
		Args:    console.Args(2, 2, "two FILEs are needed"),
		RunE: func(_ *cobra.Command, args []string) error {
			if context < 0 || context > 1000 {
				return parley.FlagErrorf("context", "%d: allowed are 0 to 1000", context)
			}
			return showDiff(a, args[0], args[1], context)
		},
	}
	cmd.Flags().IntVar(&context, "context", context, "`number` of events to show before and after the first "+
		"difference, 0 to 1000")
	return cmd
}

func showDiff(a *console.App, first, second string, context int) error {
	h1, s1, log1, err := run.ReadTrace(a, first)
	if err != nil {
		return err
	}
	h2, s2, log2, err := run.ReadTrace(a, second)
	if err != nil {
		return err
	}
	if !slices.Equal(h1.Args, h2.Args) {
		fmt.Fprintf(a.Out, "they are traces of different runs:\n%s\n%s\n",
			input.Command("- ", h1.Args, a.Width(0)), input.Command("+ ", h2.Args, a.Width(0)))
	}
	parting := trace.Diff(log1, log2, context)
	if parting == nil {
		fmt.Fprintf(a.Out, "the same %s events\n", prose.Number(log1.Len()))
		return nil
	}
	fmt.Fprintln(a.Out, parting)
	write := func(mark string, s form.Run, events []trace.Event) {
		words := reading.Words{Style: reading.Style{Width: a.Width(0) - 2, Name: s.Names.Full}, Protocol: s.Protocol}
		for _, e := range events {
			fmt.Fprintln(a.Out, mark+words.Event(e))
		}
	}
	write("  ", s1, parting.Common)
	write("- ", s1, parting.A)
	write("+ ", s2, parting.B)
	return console.ExitError(console.Violated)
}
