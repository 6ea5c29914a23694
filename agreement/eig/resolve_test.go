package eig

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// leafMajorities, the fast path for binary leaves in words of eight, returns the same as
// gatheredMajorities, which handles the children of one parent after another
// without words. What may go wrong in a word depends on s = n-m+2, the number
// of siblings below a path of length m-3: with its gap a row has s-1 bytes. So the
// cases are the fewest siblings (s = 4, m = n-2), rows of exactly one word or two
// (s = 9, 17) and of one byte more (10, 18), others between, and rows of sixteen
// words, the most that there are (n = 128); and with m of 3 to 6 paths of length 0
// to 3 above them, so that the runs of one column follow one another.
func TestLeavesResolveAlike(t *testing.T) {
	draw := rand.New(rand.NewPCG(7, 7))
	for _, nm := range [][2]int{
		{5, 3}, {6, 3}, {7, 3}, {10, 3}, {11, 3}, {12, 3}, {18, 3}, {19, 3}, {20, 3}, {40, 3}, {128, 3},
		{6, 4}, {7, 4}, {11, 4}, {12, 4}, {13, 4}, {22, 4}, {7, 5}, {9, 5}, {12, 5}, {16, 5}, {10, 6}, {13, 6},
	} {
		n, m := nm[0], nm[1]
		p := newProcess(Config{N: n, M: m, Default: []byte("0")}, 1, false)
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
		if !bytes.Contains(slow, []byte{1}) || !bytes.Contains(slow, []byte{0}) {
			t.Errorf("n=%d, m=%d: the majorities are all the same", n, m)
		}
	}
}
