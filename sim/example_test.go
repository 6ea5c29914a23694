package sim_test

import (
	"fmt"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
	"parley/trace"
)

// Four processes agree on the value of the first, although the third sends random values.
func Example() {
	log := &trace.Log{Keep: true}
	sim.Run(sim.Options{
		Protocol: eig.New(problem.Instance{N: 4, M: 1, Default: []byte("retreat")}, lockstep.Simulated),
		Faulty:   map[parley.ID]faulty.Behavior{2: faulty.Random},
		Requests: []sim.Request{{At: 0, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("attack")}}},
		Seed:     1,
		Log:      log,
	})
	for _, e := range log.Events {
		if e.Op == trace.Deliver && e.At != 2 {
			fmt.Printf("at tick %d process %d decides %q\n", e.Time, e.At, e.Msg.Body)
		}
	}
	// Output:
	// at tick 2000 process 0 decides "attack"
	// at tick 2000 process 1 decides "attack"
	// at tick 2000 process 3 decides "attack"
}
