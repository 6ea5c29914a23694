package eig

import (
	"encoding/binary"
	"math/bits"
)

// resolve computes the outputs of all ranks but the last, whose outputs are its
// inputs: the strict majority of the children's outputs, otherwise the default, from
// the leaves up. Rank k is in lexicographic order of its paths, so the
// children of node i are the entries i*(L-k) up to (i+1)*(L-k) of rank k+1.
func (t *tree) resolve() []column {
	outs := make([]column, max(t.c.Last(), 1))
	l, m, w := t.c.N-1, t.c.Last(), t.width
	if m == 0 {
		outs[0] = make(column, w)
		outs[0].put(0, w, t.root)
		return outs
	}
	binary := w == 1 && len(t.dict) <= 2
	if binary && m >= 3 && l < 128 {
		outs[m-1] = leafMajorities(t.filled(m), l, m)
	} else {
		outs[m-1] = t.gatheredMajorities(m)
	}
	for k := m - 2; k >= 0; k-- {
		outs[k] = make(column, falling(l, k)*w)
		if binary {
			majorities(outs[k+1], l-k, outs[k])
			continue
		}
		children := make([]uint32, l-k)
		for i := range len(outs[k]) / w {
			for j := range children {
				children[j] = outs[k+1].at(i*len(children)+j, w)
			}
			outs[k].put(i, w, majority(children))
		}
	}
	return outs
}

// majority returns the code that more than half of the children have, otherwise the
// default: one pass finds the only candidate, and one counts it.
func majority(children []uint32) uint32 {
	var candidate uint32
	lead := 0
	for _, c := range children {
		switch {
		case lead == 0:
			candidate, lead = c, 1
		case c == candidate:
			lead++
		default:
			lead--
		}
	}
	votes := 0
	for _, c := range children {
		if c == candidate {
			votes++
		}
	}
	if 2*votes > len(children) {
		return candidate
	}
	return 0
}

// gatheredMajorities computes rank m-1 from the columns of the leaves, for any
// codes.
func (t *tree) gatheredMajorities(m int) column {
	l := t.c.N - 1
	out := make(column, falling(l, m-1)*t.width)
	cols := t.rankColumns(m)
	next := make([]int, l)
	children := make([]uint32, 0, l)
	w, i := paths{l: l}, 0
	w.each(m-1, func() {
		children = children[:0]
		for q := range l {
			if !w.used[q] {
				children = append(children, cols[q].at(next[q], t.width))
				next[q]++
			}
		}
		out.put(i, t.width, majority(children))
		i++
	})
	return out
}

// filled returns the columns of rank r, with zeros for missing ones.
func (t *tree) filled(r int) []column {
	cols := t.rankColumns(r)
	var zeros column
	for q := range cols {
		if cols[q] == nil {
			if zeros == nil {
				zeros = make(column, slots(t.c.N, r))
			}
			cols[q] = zeros
		}
	}
	return cols
}

const ones = 0x0101010101010101

// leafMajorities computes rank m-1 from the leaves' columns of binary codes,
// eight parents at a time. Below a path of length m-3 the s ids that are not on
// it are siblings. The column of a sibling q holds a run of s-1
// rows, one below each other sibling b; the row holds what the s-2 others
// said of b. These are bytes of the sum for b, which has a place for each of the
// s-1 siblings but b: the row has a gap at the place of q itself. The gap is at the
// same place for all b before q, and one further for all b after it, so that
// whole runs are added up with the same masks.
func leafMajorities(cols []column, l, m int) column {
	s := l - (m - 3)
	words := (s - 1 + 7) / 8
	a := adder{
		s: s, below: bytesBelow(words, s), sums: make([]uint64, words*s),
		pad: make([]byte, 1+(s-1)*(s-2)+8*words),
	}
	next := make([]int, l)
	out := make(column, falling(l, m-1), falling(l, m-1)+8)
	at := 0
	w := paths{l: l}
	w.each(m-3, func() {
		clear(a.sums)
		place := 0
		for q, col := range cols {
			if !w.used[q] {
				a.add(place, col, next[q])
				next[q] += (s - 1) * (s - 2)
				place++
			}
		}
		a.majorities(out[at : at+s*(s-1)+8 : cap(out)])
		at += s * (s - 1)
	})
	return out
}

type adder struct {
	s     int
	below [][]uint64 // of each word, by bytesBelow
	sums  []uint64   // word i of the sum for sibling b at i*s+b
	pad   []byte
}

// add adds the run of the sibling at the given place, which begins at byte i of its
// column.
func (a *adder) add(place int, col column, i int) {
	size := (a.s - 1) * (a.s - 2)
	if i == 0 || len(col)-i < size+8*len(a.below) {
		// No room to read a byte before the run, or a row behind it.
		copy(a.pad[1:], col[i:i+size])
		col, i = a.pad, 1
	}
	for word, below := range a.below {
		sums, run := a.sums[word*a.s:][:a.s], col[i-1+8*word:]
		addRows(sums[:place], run, a.s-2, below[place], ^below[place+1])
		addRows(sums[place+1:], run[place*(a.s-2):], a.s-2, below[place+1], ^below[place+2])
	}
}

// addRows adds one word of each row to the sum of its sibling. The bytes below
// the gap stay in their place, and those above it move up by one: they are read from
// one byte before, where the run begins. If it were inlined it would run out of registers.
//
//go:noinline
func addRows(sums []uint64, run []byte, step int, below, above uint64) {
	for b := range sums {
		if len(run) < 9 {
			return // never happens: it spares the bounds checks of the next line
		}
		sums[b] += binary.LittleEndian.Uint64(run[1:9])&below | binary.LittleEndian.Uint64(run[:8])&above
		run = run[step:]
	}
}

// bytesBelow returns masks of the bytes of each word of a row whose place is
// below k-1, for k up to s+1.
func bytesBelow(words, s int) [][]uint64 {
	out := make([][]uint64, words)
	for word := range out {
		for k := range s + 2 {
			bytes := min(max(k-1-8*word, 0), 8)
			out[word] = append(out[word], uint64(1)<<(8*bytes)-1)
		}
	}
	return out
}

// majorities writes the majorities of all siblings' blocks, one after another: a
// byte of a sum gets its high bit if it exceeds half of the s-2 children. The
// last word of a block may reach into the next, which then overwrites it.
func (a *adder) majorities(out []byte) {
	bias := uint64(127-(a.s-2)/2) * ones
	for b := range a.s {
		for word := range a.below {
			sum := a.sums[word*a.s+b]
			binary.LittleEndian.PutUint64(out[b*(a.s-1)+8*word:], (sum+bias)>>7&ones)
		}
	}
}

// majorities computes one rank from the rank below it, for binary codes: the
// sum of eight bytes is the high byte of their product with ones, and a row of
// less than 256 children is first added up to eight bytes.
func majorities(children column, each int, out column) {
	rest := each % 8
	for i := range out {
		row := children[i*each : (i+1)*each]
		var sums uint64
		if len(row) >= 8 {
			// The last bytes, shifted free of those that belong to a whole word.
			sums = binary.LittleEndian.Uint64(row[len(row)-8:]) >> (64 - 8*rest)
			for ; len(row) >= 8; row = row[8:] {
				sums += binary.LittleEndian.Uint64(row)
			}
		} else {
			for _, c := range row {
				sums += uint64(c)
			}
		}
		_, more := bits.Sub64(uint64(each/2), sums*ones>>56, 0)
		out[i] = byte(more)
	}
}
