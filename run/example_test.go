package run_test

import (
	"fmt"

	"parley"
	"parley/agreement/eig"
	"parley/agreement/problem"
	"parley/faulty"
	"parley/lockstep"
	"parley/run"
)

// Run once from a seed, and print whether the promised properties held.
func ExampleSpec_Simulate() {
	result, err := run.Spec{
		Protocol: eig.New(problem.Instance{N: 4, M: 1, Default: []byte("0")}, lockstep.Simulated),
		Faulty:   map[parley.ID]faulty.Behavior{2: faulty.TwoFaced},
		Values:   map[parley.ID][]byte{0: []byte("1")},
		Seed:     1,
	}.Simulate()
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range result.Judge() {
		fmt.Printf("%s: %s\n", v.Promise.Property, v.Outcome())
	}
	// Output:
	// agreement: held
	// validity: held
	// termination: held
	// integrity: held
}
