package causal_test

import (
	"fmt"

	"parley/broadcast/causal"
	"parley/broadcast/diffusion"
	"parley/broadcast/problem"
	"parley/sim"
)

func ExampleTower() {
	s := sim.Run(sim.Options{
		Protocol: causal.Tower(causal.Vector, diffusion.Config{N: 3}), Seed: 1,
		Requests: []sim.Request{
			{At: 0, Msg: problem.Request([]byte("article"))},
			{At: 1, When: 2000, Msg: problem.Request([]byte("response"))},
		},
	})
	for _, d := range s.History.Deliveries {
		if d.At == 2 {
			fmt.Printf("process %s delivers %s\n", d.At, d.Msg.Body)
		}
	}
	// Output:
	// process 2 delivers article
	// process 2 delivers response
}
