//go:build unix

package cluster_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/cluster"
	"parley/faulty"
)

// spent returns the CPU time of this process.
func spent() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // never fails
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// report reports the latencies and the CPU time of b.N agreements.
func report(b *testing.B, took []time.Duration, cpu time.Duration) {
	slices.Sort(took)
	b.ReportMetric(float64(took[0].Nanoseconds())/1e3, "min-us")
	b.ReportMetric(float64(took[len(took)/2].Nanoseconds())/1e3, "p50-us")
	b.ReportMetric(float64(cpu.Nanoseconds())/1e3/float64(b.N), "cpu-us/op")
}

// BenchmarkAgree runs one agreement after another among four nodes over mutual TLS, all in this process. It
// measures the latency of one caller.
func BenchmarkAgree(b *testing.B) {
	nodes := joined(b, 4, func(_ int, c *cluster.Config) { c.Round = time.Second })
	took := make([]time.Duration, b.N)
	b.ResetTimer()
	before := spent()
	for i := range took {
		begin := time.Now()
		if _, err := nodes[0].Agree(b.Context(), cluster.AgreeRequest{Value: []byte("1")}); err != nil {
			b.Fatal(err)
		}
		took[i] = time.Since(begin)
	}
	report(b, took, spent()-before)
}

// BenchmarkAgreements has many callers at one node, and at all.
func BenchmarkAgreements(b *testing.B) {
	for _, c := range []struct {
		name    string
		sources int
		silent  bool
		round   time.Duration
		callers int
	}{
		{"one", 1, false, 50 * time.Millisecond, 256},
		{"all", 4, false, 50 * time.Millisecond, 256},
		{"silent", 1, true, 5 * time.Millisecond, 256},
	} {
		b.Run(c.name, func(b *testing.B) {
			nodes := joined(b, 4, func(i int, config *cluster.Config) {
				config.Agreements = []cluster.AgreementConfig{{Algorithm: cluster.EIG, M: 1}}
				if config.Round = c.round; c.silent && i == 3 {
					config.FaultInjection = &cluster.FaultInjection{Traitor: faulty.Silent}
				}
			})
			took := make([]time.Duration, b.N)
			var next, abstained, refused atomic.Int64
			var callers sync.WaitGroup
			b.ResetTimer()
			before := spent()
			for k := range c.callers {
				callers.Go(func() {
					for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
						begin := time.Now()
						_, err := nodes[k%c.sources].Agree(b.Context(), cluster.AgreeRequest{Value: []byte("1")})
						switch {
						case errors.Is(err, cluster.ErrAbstained):
							abstained.Add(1)
						case err != nil:
							refused.Add(1)
						}
						took[i-1] = time.Since(begin)
					}
				})
			}
			callers.Wait()
			report(b, took, spent()-before)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "agreements/s")
			b.ReportMetric(float64(abstained.Load()), "abstained")
			b.ReportMetric(float64(refused.Load()), "refused")
		})
	}
}
