package convergence_test

import (
	"fmt"

	"parley/clock/convergence"
)

// Four computers in one room: quartz clocks, messages of 0.1 to 0.6 ms, a resynchronization every ten seconds.
// Times are in nanoseconds.
func ExampleConfig_Plan() {
	plan, err := convergence.Config{
		N: 4, M: 1, Least: 100_000, Eps: 500_000, Rho: 100, Period: 10_000_000_000, Slew: 5000,
	}.Plan()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("correct clocks are within %.2f ms of each other\n", float64(plan.Delta)/1e6)
	fmt.Printf("to begin with, they must be within %.2f ms\n", float64(plan.Initial)/1e6)
	fmt.Printf("a clock further off than %.2f ms is not reckoned with\n", float64(plan.Threshold)/1e6)
	fmt.Printf("an adjustment is spread over %.1f s\n", float64(plan.Span)/1e9)
	// Output:
	// correct clocks are within 11.06 ms of each other
	// to begin with, they must be within 9.05 ms
	// a clock further off than 11.56 ms is not reckoned with
	// an adjustment is spread over 2.4 s
}
