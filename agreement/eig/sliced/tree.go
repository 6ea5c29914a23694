package sliced

import (
	"iter"
	"math/bits"
)

// Tree is the information tree of a whole system, with two words at each node. Bit r of each word belongs to the tree
// of lieutenant r. A level holds the words of its paths in lexicographic order. The paths themselves are not stored.
// The leaves are also not stored, because the liar can be called again.
type Tree struct {
	s       System
	walker  *walker
	in, out [][]uint64 // by rank above the leaves, or only the root if it is the only leaf
}

// Node is one node of all the lieutenants' trees.
type Node struct {
	In  uint64 // what each received in the message with this path
	Out uint64 // the output of the second stage: at a leaf its input, at the root the decisions
}

// Levels runs the system level by level, in the order of the rounds, and returns the whole tree. The liar may be nil
// if no process is faulty. Before the call, the caller must check by [System.Memory] that the tree is not too big.
// Levels panics on a system that does not [System.Validate].
func (s System) Levels(l Liar) *Tree {
	s.check()
	t := &Tree{s: s, walker: s.walker(l)}
	all, size := s.everyone(), 1
	for k := range max(s.M, 1) {
		t.in = append(t.in, make([]uint64, 0, size))
		t.out = append(t.out, make([]uint64, size))
		size *= s.N - 1 - k
	}
	t.in[0] = append(t.in[0], s.order(l)&all)
	for k := 1; k < s.M; k++ {
		visit(k-1, 0, 0, all, func(i int, path Path, avail uint64) {
			held := t.in[k-1][i]
			for rest := avail; rest != 0; rest &= rest - 1 {
				word := t.walker.word(path.Append(bits.TrailingZeros64(rest)), held)
				t.in[k] = append(t.in[k], word&all)
			}
		})
	}
	if s.M == 0 {
		t.out[0][0] = t.in[0][0] // the root is the only leaf
		return t
	}
	last := s.M - 1
	visit(last, 0, 0, all, func(i int, path Path, avail uint64) {
		t.out[last][i] = t.walker.leafParent(last, path, avail, t.in[last][i]) & all
	})
	for k := last - 1; k >= 0; k-- {
		children := s.N - 1 - k
		for i := range t.out[k] {
			t.out[k][i] = atLeast(t.out[k+1][i*children:(i+1)*children], t.walker.need[k])
		}
	}
	return t
}

// Memory returns how many bytes the tree of [System.Levels] takes, for a valid system: two words
// for each node above the leaves.
func (s System) Memory() uint64 {
	level, nodes := uint64(1), uint64(0)
	for k := range max(s.M, 1) {
		nodes += level
		level *= uint64(s.N - 1 - k)
	}
	return 2 * 8 * nodes
}

// Decisions returns the outputs of the root, see [System.DepthFirst].
func (t *Tree) Decisions() uint64 { return t.out[0][0] }

// Nodes iterates over the tree rank by rank, in lexicographic order of the paths.
func (t *Tree) Nodes() iter.Seq2[Path, Node] {
	return func(yield func(Path, Node) bool) {
		more, all := true, t.s.everyone()
		for k := range t.s.M + 1 {
			visit(k, 0, 0, all, func(i int, path Path, _ uint64) {
				switch {
				case !more:
				case k < len(t.in):
					more = yield(path, Node{t.in[k][i], t.out[k][i]})
				default: // a leaf
					word := t.walker.word(path, t.in[k-1][i/(t.s.N-k)]) & all
					more = yield(path, Node{word, word})
				}
			})
		}
	}
}

// visit calls do for every path that extends the given one by k relays out of avail, in
// lexicographic order, with i counting up; it returns the next i.
func visit(k, i int, path Path, avail uint64, do func(i int, path Path, avail uint64)) int {
	if k == 0 {
		do(i, path, avail)
		return i + 1
	}
	for rest := avail; rest != 0; rest &= rest - 1 {
		q := bits.TrailingZeros64(rest)
		i = visit(k-1, i, path.Append(q), avail&^(1<<q), do)
	}
	return i
}
