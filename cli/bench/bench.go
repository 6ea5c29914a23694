// Package bench implements "parley bench", which times whole systems.
package bench

import (
	"fmt"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"parley/cli/console"
	"parley/internal/bench"
	"parley/internal/draw/prose"
	"parley/internal/form"
)

// Command is "parley bench".
func Command(a *console.App) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the speed of whole systems",
		Long: "Bench measures how long agreements take in one process (eig, om, sm, phaseking), how fast real nodes " +
			"broadcast (order), and how long a failed node delays the others (failover).\n\n" +
			"Learn more: docs/reference/performance.md",
		Example: "  parley bench eig -n 13 -m 4 --engine depthfirst\n" +
			"  parley bench phaseking -n 40 -m 13\n  parley bench order --dur 100ms",
		Args: cobra.ArbitraryArgs,
		RunE: console.OneOf,
	}
	for _, name := range []string{"eig", "om", "sm", "phaseking"} {
		cmd.AddCommand(protocolCommand(a, name))
	}
	cmd.AddCommand(orderCommand(a), failoverCommand(a), failoverNode(a))
	return cmd
}

func protocolCommand(a *console.App, name string) *cobra.Command {
	s := bench.Spec{Protocol: name}
	var asJSON bool
	var memory uint64
	engines := bench.Engines[name]
	cmd := &cobra.Command{
		Use:   name,
		Short: "Measure an agreement with " + name,
		Long: "Bench " + name + " computes one agreement. Of the n processes, m lie. The command prints the " +
			"time, the memory, and the decision. The exit status is 0.",
		Example: fmt.Sprintf("  parley bench %s -n 10 -m 3 --engine %s --json", name, engines[len(engines)-1]),
		Args:    console.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := s.Check(); err != nil {
				return err
			}
			if err := form.Fits(s.Memory(), memory, s.N, s.M, "with engine "+s.Engine); err != nil {
				return err
			}
			stop := a.Busy()
			r := s.Run()
			stop()
			if asJSON {
				return a.PrintLine(r)
			}
			nodes := ""
			if r.Nodes > 0 {
				nodes = fmt.Sprintf("%s nodes, %.3g a second; ", prose.Number(r.Nodes), r.NodesPerSecond)
			}
			_, err := fmt.Fprintf(a.Out, "%s, engine %s, n = %d, m = %d, %d liars, seed %d\n"+
				"%.6f s, peak memory %.1f MiB\n%sas many as %s messages delivered one by one\nagreement: %t, on %s\n",
				r.Protocol, r.Engine, r.N, r.M, r.M, r.Seed, r.WallSeconds, float64(r.PeakRSS)/(1<<20),
				nodes, prose.Number(r.EquivalentDeliveries), r.Agreement, r.Decision)
			return err
		},
	}
	f := cmd.Flags()
	f.IntVarP(&s.N, "n", "n", 7, "number of `processes`")
	f.IntVarP(&s.M, "m", "m", 2, "number of `faults`; all m processes lie")
	f.Uint64Var(&s.Seed, "seed", 1, "seed of the lies, a `number`")
	f.StringVar(&s.Engine, "engine", engines[0], "engine: `"+strings.Join(engines, "|")+"`; "+howRun(engines))
	s.Workers, s.Signatures = runtime.GOMAXPROCS(0), "ideal"
	switch name {
	case "eig":
		f.IntVar(&s.Workers, "workers", s.Workers, "`number` of threads of engine depthfirst, 1 to 256")
	case "sm":
		f.StringVar(&s.Signatures, "signatures", s.Signatures, "signatures: `ideal|ed25519`; ideal ones are "+
			"tokens that cannot be forged")
	}
	f.Uint64Var(&memory, "memory", 4, "refuse a run that needs more than this many `GiB`")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	console.Prints(f, "bench", bench.Result{})
	return cmd
}

// howRun describes the engines of a protocol.
func howRun(engines []string) string {
	says := map[string]string{
		"machine": "machine simulates each process", "levels": "levels computes one tree for all receivers",
		"depthfirst": "depthfirst computes the same tree, one path at a time",
	}
	var all []string
	for _, e := range engines {
		if said, ok := says[e]; ok {
			e = said
		}
		all = append(all, e)
	}
	return strings.Join(all, "; ")
}
