package bench

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"parley"
	"parley/cli/child"
	"parley/cli/console"
	"parley/cluster/harness"
	"parley/internal/bench/failover"
)

// failoverCommand is "parley bench failover".
func failoverCommand(a *console.App) *cobra.Command {
	var s failover.Spec
	var how string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "failover",
		Short: "Measure how long a failed node delays the others",
		Long: "Failover starts a cluster on this machine, a process a node, whose nodes all broadcast in total order\n" +
			"at a steady rate. It kills one of them, or stops it, and measures how long nothing is delivered by the\n" +
			"others: each node fails in turn, each in a new cluster. A node that is killed closes its connections, and\n" +
			"the others see that; one that is stopped is silent, as a machine that loses its power, and is waited for\n" +
			"until it is suspected.",
		Example: "  parley bench failover --reps 1 --before 200ms --after 500ms\n" +
			"  parley bench failover --how stop --suspect 500ms --after 3s",
		Args: console.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if how != "kill" && how != "stop" {
				return parley.FlagErrorf("how", "unknown failure %q: allowed are kill and stop", how)
			}
			s.Stop = how == "stop"
			if err := s.Check(); err != nil {
				return err
			}
			ctx, stop := console.UntilSignal(cmd.Context())
			defer stop()
			defer child.LockThread()()
			start := func(ctx context.Context, id parley.ID) (*harness.Child, error) {
				return child.Start(ctx, id, "bench", "failover-node")
			}
			r, err := failover.Run(ctx, s, start, func(node string, first time.Duration) {
				fmt.Fprintf(a.Err, "%s fails: the others continue after %.1f ms\n", node, first.Seconds()*1e3)
			})
			switch {
			case ctx.Err() != nil:
				return console.ExitError(console.Interrupted)
			case err != nil:
				return fmt.Errorf("parley bench failover: %w", err)
			case asJSON:
				return a.PrintJSON(r)
			}
			return printFailures(a, r)
		},
	}
	f := cmd.Flags()
	f.IntVar(&s.N, "nodes", 3, "number of `nodes`")
	f.StringVar(&how, "how", "kill", "how a node fails: `kill|stop`; a stopped node falls silent")
	f.IntVar(&s.Reps, "reps", 3, "how many `times` each node fails")
	f.DurationVar(&s.Suspect, "suspect", time.Second, "how long a node may be silent before it is suspected")
	f.DurationVar(&s.Every, "every", time.Millisecond, "time between two messages of a node")
	f.DurationVar(&s.Before, "before", time.Second, "for how long nodes send before one fails")
	f.DurationVar(&s.After, "after", 3*time.Second, "for how long the others send after that")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// failoverNode is the hidden command "parley bench failover-node": a node that may fail.
func failoverNode(a *console.App) *cobra.Command {
	return &cobra.Command{
		Use: "failover-node", Hidden: true, Args: console.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			signal.Ignore(os.Interrupt) // the parent process receives Ctrl-C as well, and ends this one
			return failover.Serve(nil, os.Stdin, a.Out)
		},
	}
}

// printFailures prints the measurements as text.
func printFailures(a *console.App, r failover.Result) error {
	fmt.Fprintf(a.Out, "total order, %d nodes, suspected after %s of silence; how: %s\n", r.N, r.Suspect, r.How)
	fmt.Fprintf(a.Out, "%-6s %5s %22s %22s %6s\n", "NODE", "TIMES", "FIRST DELIVERY, ms", "LONGEST SILENCE, ms", "LOST")
	lost := 0
	row := func(node string, first, silent []float64, lost int) {
		fmt.Fprintf(a.Out, "%-6s %5d %8.1f, worst %7.1f %8.1f, worst %7.1f %6d\n", node, len(first),
			failover.Median(first), failover.Worst(first), failover.Median(silent), failover.Worst(silent), lost)
	}
	var first, silent []float64
	for _, f := range r.Failures {
		row(f.Node, f.First, f.Silent, f.Lost)
		first, silent, lost = slices.Concat(first, f.First), slices.Concat(silent, f.Silent), lost+f.Lost
	}
	row("all", first, silent, lost)
	return nil
}
