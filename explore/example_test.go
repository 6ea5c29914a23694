package explore_test

import (
	"context"
	"fmt"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/problem"
	"parley/explore"
	"parley/faulty"
	"parley/lockstep"
)

// Four processes agree on the value of the first, whatever one of the others says; three may not.
func Example() {
	for _, n := range []int{4, 3} {
		report, err := explore.Search(context.Background(), explore.Options{
			Protocol: eig.New(problem.Instance{N: n, M: 1, Default: []byte("0")}, lockstep.Simulated),
			Roots: []explore.Root{{
				Faulty:   map[parley.ID]faulty.Behavior{2: faulty.Any}, // whatever it can say
				Requests: []explore.Request{{At: 0, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("1")}}},
			}},
			Beyond:  true, // three processes are fewer than the theorem demands
			Workers: 1,    // so that it always finds the same run
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%d processes: %s\n", n, report.Outcome)
		for _, f := range report.Findings {
			fmt.Printf("  %s is broken: %s\n", f.Property, f.Why)
		}
	}
	// Output:
	// 4 processes: exhausted
	// 3 processes: found
	//   validity is broken: process 1 decided 0, but the correct source sent 1
}
