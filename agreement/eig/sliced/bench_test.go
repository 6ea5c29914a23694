package sliced

import (
	"fmt"
	"testing"
)

// hardest returns the systems at the bound, n = 3m+1, with all m faults: m lieutenants, or the
// source and m-1 lieutenants.
func hardest(ms ...int) (systems []System) {
	for _, m := range ms {
		s := System{N: 3*m + 1, M: m, Value: 1, Faulty: everyone(m)}
		systems = append(systems, s)
		s.Faulty, s.SourceFaulty = everyone(m-1), true
		systems = append(systems, s)
	}
	return systems
}

func bench(b *testing.B, s System, workers int, run func() uint64) {
	name := fmt.Sprintf("n=%d,m=%d", s.N, s.M)
	if s.SourceFaulty {
		name += ",source"
	}
	if workers > 1 {
		name += fmt.Sprintf(",workers=%d", workers)
	}
	b.Run(name, func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			run()
		}
		size, _ := Count(s.N, s.M)
		b.ReportMetric(float64(size.Nodes)*float64(b.N)/b.Elapsed().Seconds(), "nodes/s")
	})
}

func BenchmarkDepthFirst(b *testing.B) {
	for _, workers := range []int{1, 2} {
		for _, s := range hardest(3, 4, 5, 6, 7) {
			bench(b, s, workers, func() uint64 { return s.DepthFirst(TwoFaced(1), workers) })
		}
	}
}

func BenchmarkLevels(b *testing.B) {
	for _, s := range hardest(3, 4, 5, 6) {
		bench(b, s, 1, func() uint64 { return s.Levels(TwoFaced(1)).Decisions() })
	}
}
