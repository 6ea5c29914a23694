package cli

import (
	"encoding/json"
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"parley"
	"parley/internal/bench"
	"parley/internal/draw"
)

// bench is "parley bench".
func (a *app) bench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Time a whole system against liars",
		Args:  cobra.ArbitraryArgs,
		RunE:  oneOf,
	}
	for _, name := range []string{"eig", "om", "sm", "phaseking"} {
		cmd.AddCommand(a.benchOne(name))
	}
	return cmd
}

func (a *app) benchOne(name string) *cobra.Command {
	s := bench.Spec{Protocol: name}
	var asJSON bool
	var memory uint64
	engines := bench.Engines[name]
	cmd := &cobra.Command{
		Use:     name,
		Short:   "Time " + name,
		Example: fmt.Sprintf("  parley bench %s -n 10 -m 3 --engine %s --json", name, engines[len(engines)-1]),
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := s.Check(); err != nil {
				return err
			}
			if need := s.Memory(); need > memory<<30 {
				return &parley.FlagError{Flag: "n", Err: fmt.Errorf("%d processes with m = %d need about %s with engine %s, "+
					"more than --memory %d GiB; %s", s.N, s.M, gigabytes(need), s.Engine, memory, smaller(s.N, s.M))}
			}
			stop := a.busy()
			r := s.Run()
			stop()
			if asJSON {
				return json.NewEncoder(a.out).Encode(r)
			}
			nodes := ""
			if r.Nodes > 0 {
				nodes = fmt.Sprintf("%s nodes, %.3g nodes/s, ", draw.Number(r.Nodes), r.NodesPerSecond)
			}
			_, err := fmt.Fprintf(a.out, "%s, engine %s, n = %d, m = %d, %d liars, seed %d\n"+
				"%.6f s, peak memory %.1f MiB, %s%s equivalent deliveries\nagreement: %t, on %s\n",
				r.Protocol, r.Engine, r.N, r.M, r.M, r.Seed, r.WallSeconds, float64(r.PeakRSS)/(1<<20),
				nodes, draw.Number(r.EquivalentDeliveries), r.Agreement, r.Decision)
			return err
		},
	}
	f := cmd.Flags()
	f.IntVarP(&s.N, "n", "n", 7, "number of `processes`")
	f.IntVarP(&s.M, "m", "m", 2, "number of `faults`, all of them at work")
	f.Uint64Var(&s.Seed, "seed", 1, "the seed of the liars")
	f.StringVar(&s.Engine, "engine", engines[0], "how the system is run: machine, a machine a process in the simulator;\n"+
		"levels and depthfirst (eig): one tree for all receivers, whole or a path at a time")
	f.IntVar(&s.Workers, "workers", runtime.GOMAXPROCS(0), "cores to use with engine depthfirst")
	f.StringVar(&s.Signatures, "signatures", "ideal", "ideal tokens, or ed25519 (sm)")
	f.Uint64Var(&memory, "memory", 4, "refuse a run that needs more than this many `GiB`")
	f.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
