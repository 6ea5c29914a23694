package sm_test

import (
	"fmt"

	"parley"
	"parley/agreement/problem"
	"parley/agreement/sm"
	"parley/faulty"
	"parley/lockstep"
	"parley/sim"
)

// Three processes with oral messages cannot tolerate one that lies. With
// signatures they can: the source sends the others different values, and both
// can prove it.
func Example() {
	c := sm.Config{Instance: problem.Instance{N: 3, M: 1, Default: []byte("0")}}
	s := sim.Run(sim.Options{
		Protocol: sm.New(c, lockstep.Simulated),
		Faulty:   map[parley.ID]faulty.Behavior{0: faulty.TwoFaced},
		Requests: []sim.Request{{At: 0, Msg: parley.Msg{Kind: parley.Propose, Body: []byte("1")}}},
	})
	d := problem.Decisions(&s.History)
	fmt.Printf("process 1 decides %s, process 2 decides %s\n", d[1], d[2])
	for _, x := range parley.Show(s.Machine(1), s.Now()) {
		if x.Name == "rounds.V[0].value" || x.Name == "rounds.V[1].value" {
			fmt.Println(x.Name, "=", x.Value)
		}
	}
	// Output:
	// process 1 decides 0, process 2 decides 0
	// rounds.V[0].value = 0
	// rounds.V[1].value = 1
}
