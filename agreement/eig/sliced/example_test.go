package sliced_test

import (
	"fmt"

	"parley/agreement/eig/sliced"
)

// Four processes tolerate one fault: the source is correct and sends 1, its third lieutenant tells the
// first two that it received 0.
func Example() {
	s := sliced.System{N: 4, M: 1, Faulty: 0b100, Value: 1}
	if err := s.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	lie := sliced.Liar(func(path sliced.Path, held uint64) uint64 { return 0b100 })
	tree := s.Levels(lie)
	for path, node := range tree.Nodes() {
		if path != 0 {
			fmt.Printf("lieutenant %d says %03b\n", path.Last(), node.In)
		}
	}
	fmt.Printf("decisions %03b of %03b\n", tree.Decisions()&s.Correct(), s.Correct())
	// Output:
	// lieutenant 0 says 111
	// lieutenant 1 says 111
	// lieutenant 2 says 100
	// decisions 011 of 011
}
