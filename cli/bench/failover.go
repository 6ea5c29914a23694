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
		Long: "Failover starts a cluster of real processes that broadcast in total order at a steady rate. " +
			"It makes each node fail in turn, each time in a new cluster, and measures how long the other " +
			"nodes deliver nothing. With --how kill, the connections of the failed node close, so the " +
			"other nodes notice the failure. With --how stop, the failed node only becomes " +
			"silent, like a computer without power. The other nodes then suspect it after the time of " +
			"--suspect. The exit status is 0, or 130 after Ctrl-C.",
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
				a.Notice("%s fails: the others continue after %.1f ms", node, first.Seconds()*1e3)
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
	f.IntVar(&s.N, "nodes", 3, "number of `nodes`, 3 to 13")
	f.StringVar(&how, "how", "kill", "failure of a node: `kill|stop`; kill closes the connections of "+
		"the node, stop makes the node silent")
	f.IntVar(&s.Reps, "reps", 3, "`number` of failures of each node, 1 to 1000")
	f.DurationVar(&s.Suspect, "suspect", time.Second, "`duration` of silence after which a node is suspected, 20ms to 1m")
	f.DurationVar(&s.Every, "every", time.Millisecond, "`duration` between two messages of a node, 100us to 1s")
	f.DurationVar(&s.Before, "before", time.Second, "`duration` of sending before the failure, 100ms to 1m")
	f.DurationVar(&s.After, "after", 3*time.Second, "`duration` of sending after the failure, 100ms to 1m")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	console.Prints(f, "bench-failover", failover.Result{})
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
