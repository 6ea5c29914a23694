// Command sweep runs a protocol with thousands of seeds, from Go. First it uses enough processes for the number of
// faults, so every promise must hold. Then it uses only three processes, and one of them lies. It looks for the
// smallest run that shows why these processes cannot agree.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/lockstep"
	"parley/run"
)

func main() {
	if err := sweep(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

// spec returns a run of Byzantine agreement on the value of the first of n processes. The last process
// lies.
func spec(n int) run.Spec {
	p := eig.New(problem.Instance{N: n, M: 1, Default: []byte("0")}, lockstep.Simulated)
	return run.Spec{
		Protocol: p,
		Faulty:   map[parley.ID]faulty.Behavior{parley.ID(n - 1): faulty.Random},
		Values:   map[parley.ID][]byte{0: []byte("1")},
	}
}

// seeds yields the seeds 1 to 5000.
func seeds(yield func(uint64) bool) {
	for seed := uint64(1); seed <= 5000 && yield(seed); seed++ {
	}
}

func sweep(ctx context.Context, out io.Writer) error {
	report, err := run.Sweep(ctx, spec(4), seeds, run.SweepOptions{})
	if err != nil {
		return err
	}
	held := report.Properties[problem.Validity].Held
	fmt.Fprintf(out, "four processes: %d runs, validity held in %d\n", report.Runs, held)

	// With three processes the protocol promises nothing. Promise validity nevertheless, and find the run that breaks it.
	three := spec(3)
	three.Protocol.Promises = func(parley.RunConditions) []parley.Promise {
		return []parley.Promise{{Property: problem.Validity, Holds: true, Because: "we would like it to"}}
	}
	if report, err = run.Sweep(ctx, three, seeds, run.SweepOptions{}); err != nil {
		return err
	}
	breach := report.Breaches[0]
	fmt.Fprintf(out, "three processes: seed %d breaks %s: %s\n", breach.Seed, breach.Property, breach.How)
	three.Seed = breach.Seed
	least, _ := run.Minimize(ctx, three, breach.Property)
	result, err := least.Simulate()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "the smallest such run has %d events and %d liar\n", result.Log.Len(), len(least.Faulty))
	return nil
}
