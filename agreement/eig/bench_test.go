package eig

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkResolve measures only the second stage: all outputs of one process's tree,
// from columns of two values drawn at random.
func BenchmarkResolve(b *testing.B) {
	for _, nm := range [][2]int{{13, 4}, {16, 5}, {19, 6}} {
		n, m := nm[0], nm[1]
		c := Config{N: n, M: m, Default: []byte("0")}
		p := newProcess(c, 1, false)
		p.learn(dict{[]byte("1")})
		draw := rand.New(rand.NewPCG(1, 1))
		nodes := 1
		for r := 1; r <= m; r++ {
			for id := 1; id < n; id++ {
				col := make(column, slots(n, r))
				for i := range col {
					col[i] = byte(draw.Uint32() & 1)
				}
				p.columns[r][id] = col
				nodes += len(col)
			}
		}
		b.Run(fmt.Sprintf("n=%d,m=%d", n, m), func(b *testing.B) {
			b.SetBytes(int64(nodes))
			for b.Loop() {
				p.resolve()
			}
			b.ReportMetric(float64(nodes)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gnodes/s")
		})
	}
}
