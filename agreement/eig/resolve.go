package eig

import (
	"encoding/binary"
	"math/bits"

	"parley"
)

// resolve computes the outputs of all ranks but the last, whose outputs are its
// inputs: the strict majority of the children's outputs, else the default, from
// the leaves up. Rank k comes back in lexicographic order of its paths, so the
// children of node i are the entries i*(L-k) up to (i+1)*(L-k) of rank k+1.
func (p *process) resolve() []column {
	outs := make([]column, max(p.c.M, 1))
	l, m, w := p.c.N-1, p.c.M, p.width
	if m == 0 {
		outs[0] = make(column, w)
		outs[0].put(0, w, p.root)
		return outs
	}
	binary := w == 1 && len(p.dict) <= 2
	if binary && m >= 2 && l < 128 {
		outs[m-1] = leafMajorities(p.filled(m), l, m)
	} else {
		outs[m-1] = p.gatheredMajorities(m)
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

// majority returns the code that more than half of the children have, else the
// default: one pass for the only candidate, and one to count it.
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
func (p *process) gatheredMajorities(m int) column {
	l := p.c.N - 1
	out := make(column, falling(l, m-1)*p.width)
	cols := p.rankColumns(m)
	next := make([]int, l)
	children := make([]uint32, 0, l)
	w, i := paths{l: l}, 0
	w.each(m-1, func() {
		children = children[:0]
		for q := range l {
			if !w.used[q] {
				children = append(children, cols[q].at(next[q], p.width))
				next[q]++
			}
		}
		out.put(i, p.width, majority(children))
		i++
	})
	return out
}

// filled returns the columns of rank r, with zeros for those that did not come.
func (p *process) filled(r int) []column {
	cols := p.rankColumns(r)
	var zeros column
	for q := range cols {
		if cols[q] == nil {
			if zeros == nil {
				zeros = make(column, slots(p.c.N, r))
			}
			cols[q] = zeros
		}
	}
	return cols
}

const ones = 0x0101010101010101

// leafMajorities computes rank m-1 from the leaves' columns of binary codes,
// eight parents at a time. The parents come in blocks of siblings: below a node
// of rank m-2 with g children each child has g-1 of its own, one from every
// other sibling q, and these are g-1 entries in a row in the column of q. So a
// block adds up g rows of bytes, each with a gap where q itself stands.
func leafMajorities(cols []column, l, m int) column {
	g := l - (m - 2)
	blocks := falling(l, m-2)
	a := adder{
		cols: cols, next: make([]int, l), row: g - 1, gaps: gaps(g), sums: make([]uint64, (g+7)/8),
		// A byte of a sum gets its high bit if it exceeds half of the g-1 children.
		bias: uint64(127-(g-1)/2) * ones,
	}
	if len(a.sums) == 2 {
		for _, words := range a.gaps {
			a.two = append(a.two, [2]gap(words))
		}
	}
	out := make(column, blocks*g, blocks*g+8)
	at := 0
	w := paths{l: l}
	w.each(m-2, func() {
		o := out[at : at+g+8 : cap(out)]
		if len(a.sums) == 2 {
			a.addTwo(&w, o)
		} else {
			a.add(&w, o)
		}
		at += g
	})
	return out
}

// adder adds up the rows of one block after another.
type adder struct {
	cols []column
	next []int // where the next row of each column begins
	row  int   // bytes in a row
	gaps [][]gap
	two  [][2]gap // gaps, if they have two words
	sums []uint64
	bias uint64
	pad  [parley.MaxProcesses]byte
}

// gap says which bytes of a word stay in their place (below the gap) and which
// move one place up (above it).
type gap struct{ below, above uint64 }

// gaps returns the words of a row for a gap at each of g places.
func gaps(g int) [][]gap {
	out := make([][]gap, g)
	for at := range out {
		out[at] = make([]gap, (g+7)/8)
		for place := range g {
			mask := uint64(0xFF) << (place % 8 * 8)
			if place < at {
				out[at][place/8].below |= mask
			} else if place > at {
				out[at][place/8].above |= mask
			}
		}
	}
	return out
}

// add computes a block's majorities into out.
func (a *adder) add(w *paths, out []byte) {
	clear(a.sums)
	j := 0
	for q, col := range a.cols {
		if w.used[q] {
			continue
		}
		row := col[a.next[q]:]
		a.next[q] += a.row
		if len(row) < 8*len(a.sums) {
			row = a.padded(row)
		}
		var before uint64
		for i, gap := range a.gaps[j] {
			x := binary.LittleEndian.Uint64(row[8*i:])
			a.sums[i] += x&gap.below | (x<<8|before>>56)&gap.above
			before = x
		}
		j++
	}
	for i, sum := range a.sums {
		binary.LittleEndian.PutUint64(out[8*i:], (sum+a.bias)>>7&ones)
	}
}

// addTwo is add for rows of two words: blocks of 9 to 16 siblings.
func (a *adder) addTwo(w *paths, out []byte) {
	// The siblings first, without a branch that would be guessed wrong.
	var siblings [32]uint8
	n := 0
	for q, used := range w.used[:len(a.cols)] {
		siblings[n&31] = uint8(q)
		free := 1
		if used {
			free = 0
		}
		n += free
	}
	var low, high uint64
	for j, q := range siblings[:len(a.two)] {
		i := a.next[q]
		a.next[q] = i + a.row
		col := a.cols[q]
		if len(col)-i < 16 {
			col, i = a.padded(col[i:]), 0
		}
		row := (*[16]byte)(col[i:])
		x, y := binary.LittleEndian.Uint64(row[:8]), binary.LittleEndian.Uint64(row[8:])
		gap := &a.two[j]
		low += x&gap[0].below | x<<8&gap[0].above
		high += y&gap[1].below | (y<<8|x>>56)&gap[1].above
	}
	binary.LittleEndian.PutUint64(out, (low+a.bias)>>7&ones)
	binary.LittleEndian.PutUint64(out[8:], (high+a.bias)>>7&ones)
}

// padded returns the last row of a column with room behind it.
func (a *adder) padded(row column) column {
	clear(a.pad[copy(a.pad[:], row):])
	return a.pad[:]
}

// majorities computes one rank from the next one below it, binary codes: the
// sum of eight bytes is the high byte of their product with ones.
func majorities(children column, each int, out column) {
	half := each / 2
	for i := range out {
		row := children[i*each : (i+1)*each]
		sum := 0
		for ; len(row) >= 8; row = row[8:] {
			sum += int(binary.LittleEndian.Uint64(row) * ones >> 56)
		}
		for _, c := range row {
			sum += int(c)
		}
		_, more := bits.Sub64(uint64(half), uint64(sum), 0)
		out[i] = byte(more)
	}
}
