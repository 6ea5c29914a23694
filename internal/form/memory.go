package form

import (
	"fmt"
	"math"

	"parley"
	"parley/internal/bench"
)

// memory estimates the bytes that a run holds: what the protocol says, and the log with one event for each frame sent
// and each frame received.
func memory(p parley.Protocol) uint64 {
	const event = 128
	var need parley.Traffic
	if p.Cost != nil {
		frames := uint64(p.Cost(p.N, p.M).Rounds * p.N * p.N)
		need = parley.Traffic{Messages: 2 * event}.Times(frames)
	}
	if p.Memory != nil {
		need = need.Plus(parley.Traffic{Messages: p.Memory()})
	}
	return need.Messages
}

// Fits returns an error if a run of n processes needs more than limit GiB. need is in bytes.
func Fits(need, limit uint64, n, m int, what string) error {
	if need <= limit<<30 {
		return nil
	}
	return parley.FlagErrorf("n", "%d processes with m = %d need about %s %s, more than --memory %d GiB: raise "+
		"--memory; %s", n, m, gigabytes(need), what, limit, smaller(n, m))
}

// smaller suggests what fits into memory where one machine for each process does not.
func smaller(n, m int) string {
	fits := bench.Spec{Protocol: "eig", Engine: "depthfirst", N: n, M: m, Workers: 1, Signatures: "ideal"}
	if fits.Check() == nil {
		return fmt.Sprintf("\"parley bench eig -n %d -m %d --engine depthfirst\" runs the whole system in 32 MiB", n, m)
	}
	return "phaseking agrees with few messages, and \"parley bench phaseking\" keeps no log"
}

func gigabytes(b uint64) string {
	if b == math.MaxUint64 {
		return "countless GiB"
	}
	return fmt.Sprintf("%.1f GiB", float64(b)/(1<<30))
}
