package eig

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// The fast way over binary leaves gives what the way for any codes gives, which
// looks at the children of one parent after another: rows of one word up to
// sixteen, and systems with more levels than lieutenants bear witness.
func TestLeavesResolveAlike(t *testing.T) {
	draw := rand.New(rand.NewPCG(7, 7))
	shapes := 0
	for _, nm := range [][2]int{
		{4, 3}, {5, 3}, {6, 3}, {7, 3}, {10, 3}, {11, 3}, {12, 3}, {19, 3}, {20, 3}, {21, 3}, {40, 3}, {128, 3},
		{5, 4}, {6, 4}, {10, 4}, {13, 4}, {14, 4}, {22, 4}, {9, 5}, {12, 5}, {16, 5}, {10, 6}, {13, 6},
	} {
		n, m := nm[0], nm[1]
		p := newProcess(Config{N: n, M: m, Default: []byte("0")}, 1)
		p.learn(dict{[]byte("1")})
		for id := 1; id < n; id++ {
			if id%5 == 4 {
				continue // never sent anything
			}
			col := make(column, slots(n, m))
			for i := range col {
				col[i] = byte(draw.Uint32() & 1)
			}
			p.columns[m][id] = col
		}
		fast, slow := leafMajorities(p.filled(m), n-1, m), p.gatheredMajorities(m)
		if !bytes.Equal(fast, slow) {
			t.Errorf("n=%d, m=%d: the majorities differ", n, m)
		}
		if bytes.Contains(slow, []byte{1}) {
			shapes++
		}
	}
	if shapes < 18 {
		t.Errorf("only %d shapes had a majority of ones", shapes)
	}
}
