package sliced

import (
	"fmt"
	"iter"
)

// Tree is the information tree of a whole system, with a word at each node: bit r of it belongs to
// the tree of lieutenant r. Level k holds its paths' words in lexicographic order of the paths,
// see [Index]; the paths themselves are not stored.
type Tree struct {
	s    System
	all  uint64         // the lieutenants
	need [maxFaults]int // as of System.thresholds

	in, out [][]uint64 // by rank above the leaves, or the root alone if it is the only leaf

	// lies holds the inputs of leaves whose last relay is faulty, stride words for each node of the
	// rank above, of which the first are used, in order of the relay.
	lies   []uint64
	stride int
}

// newTree returns the empty tree of a system.
func newTree(s System) *Tree {
	t := &Tree{s: s, all: s.everyone(), need: s.thresholds(), stride: s.liarsPerLeafParent()}
	level := 1
	for k := range max(s.M, 1) {
		t.in = append(t.in, make([]uint64, level))
		t.out = append(t.out, make([]uint64, level))
		if k == s.M-1 {
			t.lies = make([]uint64, level*t.stride)
		}
		level *= s.N - 1 - k
	}
	return t
}

// System returns the system whose tree it is.
func (t *Tree) System() System { return t.s }

// Result returns what came of the run.
func (t *Tree) Result() Result { return t.s.result(t.out[0][0]) }

// Input returns what each lieutenant was told in the message with this path. It panics if the tree
// has no such path.
func (t *Tree) Input(p Path) uint64 {
	t.check(p)
	k := p.Len()
	if k < len(t.in) {
		return t.in[k][Index(p, t.s.N-1)]
	}
	q := p.Last()
	p = p.Parent()
	i := Index(p, t.s.N-1)
	if t.s.Faulty>>q&1 == 0 {
		return broadcast(t.in[k-1][i]>>q&1) & t.all
	}
	before := t.s.Faulty & (1<<q - 1) &^ p.used()
	return t.lies[int(i)*t.stride+ones(before)]
}

// Output returns what the second stage made of the node in each lieutenant's tree: of a leaf its
// input, of the root the decisions. It panics if the tree has no such path.
func (t *Tree) Output(p Path) uint64 {
	t.check(p)
	if k := p.Len(); k < len(t.out) {
		return t.out[k][Index(p, t.s.N-1)]
	}
	return t.Input(p)
}

// Paths yields the paths of rank k, 0..M, in lexicographic order.
func (t *Tree) Paths(k int) iter.Seq[Path] {
	return func(yield func(Path) bool) {
		if k < 0 || k > t.s.M {
			return
		}
		size, _ := Count(t.s.N, k)
		for i := range size.Leaves {
			if !yield(PathAt(i, k, t.s.N-1)) {
				return
			}
		}
	}
}

func (t *Tree) check(p Path) {
	if !p.in(t.s.N-1, t.s.M) {
		panic(fmt.Sprintf("sliced: no path %v in a tree of %d lieutenants and ranks 0 to %d",
			p.Relays(), t.s.N-1, t.s.M))
	}
}
