package sliced

import (
	"math/bits"
	"sync"
	"sync/atomic"
)

// DepthFirst runs the system against a liar, and returns the decision of each lieutenant, one bit each. The bit of a
// faulty lieutenant is what it would decide if it followed the second stage. To ignore these bits, mask the result
// with [System.Correct]. DepthFirst does not keep the tree. The output of a node depends only on its word and the
// lies below it, so DepthFirst evaluates the tree depth first, in the memory of one path. It evaluates every node and
// asks for every lie, once.
//
// If workers > 1, this number of goroutines shares the subtrees below the paths of two steps, and all of them call
// the liar. If the tree has no ranks below these paths, no goroutine is started. Each worker takes about 4 KiB,
// whatever the size of the tree. The liar may be nil if no process is faulty. DepthFirst panics on a system that does
// not [System.Validate].
func (s System) DepthFirst(l Liar, workers int) (decisions uint64) {
	s.check()
	if workers > 1 && s.M > 2 {
		return s.split(l, workers) & s.everyone()
	}
	return s.walker(l).output(0, 0, s.everyone(), s.order(l)) & s.everyone()
}

// split is DepthFirst with several workers. The outputs of level 2 are in
// lexicographic order, so that the children of a node are adjacent.
func (s System) split(l Liar, workers int) uint64 {
	lieutenants := s.N - 1
	order := s.order(l)
	top := s.walker(l)
	var level1 [maxLieutenants]uint64
	for q := range lieutenants {
		level1[q] = top.word(Path(0).Append(q), order)
	}
	outs := make([]uint64, lieutenants*(lieutenants-1))
	var next atomic.Int64
	var done sync.WaitGroup
	for range min(workers, len(outs)) {
		done.Go(func() {
			w := s.walker(l)
			for {
				i := int(next.Add(1)) - 1
				if i >= len(outs) {
					return
				}
				p, q := i/(lieutenants-1), i%(lieutenants-1)
				if q >= p {
					q++
				}
				path := Path(0).Append(p).Append(q)
				outs[i] = w.output(2, path, s.everyone()&^(1<<p|1<<q), w.word(path, level1[p]))
			}
		})
	}
	done.Wait()
	for q := range lieutenants {
		block := outs[q*(lieutenants-1) : (q+1)*(lieutenants-1)]
		level1[q] = atLeast(block, top.need[1])
	}
	return atLeast(level1[:lieutenants], top.need[0])
}

// walker is one worker of a depth-first engine: its parameters, and room for the outputs of
// one block of siblings per rank.
type walker struct {
	faulty uint64
	m      int
	need   [maxFaults]int // as of System.thresholds
	liar   Liar
	outs   [maxFaults][maxLieutenants]uint64
}

func (s System) walker(l Liar) *walker {
	return &walker{faulty: s.Faulty, m: s.M, need: s.thresholds(), liar: l}
}

// word returns what the path's last relay sends, where x is what the lieutenants hold for the path
// without it: its own bit to all, or what the liar returns.
func (w *walker) word(path Path, x uint64) uint64 {
	q := path.Last()
	held := x >> q & 1
	if w.faulty>>q&1 != 0 {
		return w.liar(path, held)
	}
	return broadcast(held)
}

// output returns the word of outputs of the node at a path of length k, where avail are the
// lieutenants not on the path and x are the inputs.
func (w *walker) output(k int, path Path, avail, x uint64) uint64 {
	switch w.m - k {
	case 0:
		return x // a leaf puts out its input
	case 1:
		return w.leafParent(k, path, avail, x)
	case 2:
		if ones(avail&w.faulty) <= 7 {
			return w.leafGrandparent(k, path, avail, x)
		}
	}
	outs := &w.outs[k]
	i := 0
	for rest := avail; rest != 0; rest &= rest - 1 {
		q := bits.TrailingZeros64(rest)
		child := path.Append(q)
		outs[i&63] = w.output(k+1, child, avail&^(1<<q), w.word(child, x))
		i++
	}
	return atLeast(outs[:i], w.need[k])
}

// leafParent is output for the rank above the leaves. The leaves of correct relays are not
// needed: each counts for all receivers alike, so they lower the threshold for the lies.
func (w *walker) leafParent(k int, path Path, avail, x uint64) uint64 {
	need := w.need[k] - ones(x&avail&^w.faulty)
	lies := &w.outs[k]
	i := 0
	for rest := avail & w.faulty; rest != 0; rest &= rest - 1 {
		q := bits.TrailingZeros64(rest)
		lies[i&63] = w.liar(path.Append(q), x>>q&1)
		i++
	}
	return atLeast(lies[:i], need)
}
