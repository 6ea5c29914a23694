package cluster_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"parley/cluster"
	"parley/replica/keyvalue"
)

// Commands of clients at three nodes. Each client sends its next command when the last one is answered.
func BenchmarkTable(b *testing.B) {
	for _, durable := range []bool{false, true} {
		for _, clients := range []int{1, 64, 1024} {
			b.Run(fmt.Sprintf("durable=%t/clients=%d", durable, clients), func(b *testing.B) {
				dir := b.TempDir()
				r := newRig(b, 3, func(c *cluster.Config) {
					if durable {
						c.Dir, c.Durable = filepath.Join(dir, c.Name), true
					}
					c.Times = cluster.Times{}
					c.Tables = []cluster.TableConfig{{Name: "t"}}
				})
				sessions := make([]*cluster.Session, clients)
				for i := range sessions {
					sessions[i] = r.table(i % 3).Session()
					if _, _, err := sessions[i].Do(b.Context(), nil); err != nil {
						b.Fatal(err)
					}
				}
				var left atomic.Int64
				left.Store(int64(b.N))
				b.ResetTimer()
				var working sync.WaitGroup
				for i, s := range sessions {
					working.Go(func() {
						command := keyvalue.Put(fmt.Appendf(nil, "key%d", i), make([]byte, 64))
						for left.Add(-1) >= 0 {
							if _, _, err := s.Do(b.Context(), command); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				working.Wait()
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commands/s")
			})
		}
	}
}
