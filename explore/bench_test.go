package explore_test

import (
	"context"
	"syscall"
	"testing"
	"time"

	"parley/agreement/om"
	"parley/broadcast/atomic"
	"parley/explore"
	"parley/lockstep"
)

// BenchmarkStates visits the states of small systems with one worker. It reports processor time, because
// the computer may be busy with other work.
func BenchmarkStates(b *testing.B) {
	for name, o := range map[string]explore.Options{
		"om n=5": {Protocol: om.New(oral(5, 1), lockstep.Simulated), Roots: liars(5, 1, "0", "1")},
		"atomic n=3": {
			Protocol: atomic.New(atomic.Config{N: 3, Detector: true}),
			Roots:    asking(cast(0, "a"), cast(1, "b"), cast(2, "c")),
			Model:    explore.Model{FIFO: true, Crashes: 1, Detect: true},
		},
	} {
		b.Run(name, func(b *testing.B) {
			o.Workers = 1
			var states uint64
			before := processor()
			for b.Loop() {
				r, err := explore.Search(context.Background(), o)
				if err != nil || r.Outcome != explore.Exhausted {
					b.Fatal(r.Outcome, err)
				}
				states += r.States
			}
			b.ReportMetric(float64(states)/(processor()-before).Seconds(), "states/cpu-s")
			b.ReportMetric(float64(states)/float64(b.N), "states")
		})
	}
}

// processor returns the processor time that this program has used.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
