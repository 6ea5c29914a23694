package sliced

import "math/bits"

// Pruned returns the Decisions of [System.DepthFirst], and of it alone the smaller count of Lies:
// it does not enter a subtree whose output is the same whatever the liars below it say. It is no
// measure of the algorithm's work but a way to its outcome, and goes where no evaluation of every
// node can: with n > 3m it takes time for the paths of faulty relays only, m! or so.
//
// Take a node that has one value v at every receiver, and f faulty lieutenants not on its path. If
// its children are leaves, all correct children put out v, and v wins, whatever the others are, if
// there are enough of them: f <= slack, see [slack]. If they are not leaves, then every correct
// child is again a node with v at every receiver and, its relay being correct, f faulty ones not
// on its path; so if f <= slack it puts out v, by induction. There are more children here than at
// the rank above the leaves, which gives no less slack, so v wins here too.
//
// No bound on the faults of the system enters; beyond the bound the condition fails at more nodes,
// and these are evaluated. Beside the lies of such subtrees, those of nodes are left out where the
// settled children have the majority.
func (s System) Pruned(l Liar) Result {
	s.check()
	w := s.walker(l)
	slack := s.slack()
	decisions := w.pruned(0, 0, s.everyone(), s.order(l), &slack)
	r := s.result(decisions)
	r.Lies = w.lies
	if s.SourceFaulty {
		r.Lies++
	}
	return r
}

// slack returns for each value how many of the children of a node above the leaves may differ from
// it without changing the node's output: it is the smallest such number of all ranks, as a child
// more raises neither the threshold nor the rest by more than one. With m = 0 there are no
// children, and the root is a leaf.
func (s System) slack() [2]int {
	children := s.N - s.M
	need := threshold(children, s.Default)
	return [2]int{need - 1, children - need}
}

// pruned is [walker.output] with the subtrees that are settled left out.
func (w *walker) pruned(k int, path Path, avail, x uint64, slack *[2]int) uint64 {
	if k == w.m {
		return x
	}
	need := w.need[k]
	liars, correct := avail&w.faulty, avail&^w.faulty
	open, f := liars, ones(liars)
	if k == w.m-1 || f <= slack[1] {
		need -= ones(correct & x) // settled at 1; those settled at 0 count for nothing
	} else {
		open |= correct & x
	}
	if k != w.m-1 && f > slack[0] {
		open |= correct &^ x
	}
	if need <= 0 {
		return ^uint64(0)
	}
	if need > ones(open) {
		return 0
	}
	outs := &w.outs[k]
	i := 0
	for rest := open; rest != 0; rest &= rest - 1 {
		q := bits.TrailingZeros64(rest)
		child := path.child(q)
		outs[i&63] = w.pruned(k+1, child, avail&^(1<<q), w.word(child, x), slack)
		i++
	}
	return atLeast(outs[:i], need)
}
