// Command flood explores a protocol that is not part of Parley. It explores every run of four processes in which at
// most one process crashes. The crash may happen at any time, even while the process sends. If the protocol has one
// round, the explorer finds a run in which two processes decide differently. If it has two rounds, there is no such
// run.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"parley"
	"parley/explore"
)

func main() {
	if err := search(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func search(ctx context.Context, out io.Writer) error {
	for rounds := 1; rounds <= 2; rounds++ {
		report, err := explore.Search(ctx, explore.Options{
			Protocol: flood(4, 1, rounds),
			Roots: []explore.Root{{
				Requests: []explore.Request{{At: 0, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("1")}}},
			}},
			Model:   explore.Model{Crashes: 1},
			Workers: 1, // so that it always finds the same run
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "rounds: %d; states: %d; %s\n", rounds, report.States, report.Outcome)
		for _, f := range report.Findings {
			fmt.Fprintf(out, "  %s is broken after %d steps: %s\n", f.Property, len(f.Run.Steps), f.Why)
		}
	}
	return nil
}
