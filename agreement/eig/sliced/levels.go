package sliced

import "math/bits"

// LevelAdversary is an adversary that rushes: in each round it speaks after the correct processes.
// It is handed the tree with all inputs of the rounds before, and with the words of the correct
// senders of this round, and returns the liar to ask for the words of the faulty ones; they are
// asked for in lexicographic order of their paths. A word not yet asked for reads as 0. The
// outputs of the tree are not there before the end.
type LevelAdversary func(t *Tree, round int) Liar

// EveryRound is the adversary that uses the same liar in every round and looks at nothing.
func (l Liar) EveryRound() LevelAdversary {
	return func(*Tree, int) Liar { return l }
}

// Levels runs the system level by level, as the rounds go, and returns the whole tree. The
// adversary may be nil if nobody is faulty. The caller refuses trees that are too big, by
// [System.Memory], beforehand. Levels panics on a system that does not [System.Validate].
func (s System) Levels(adv LevelAdversary) *Tree {
	s.check()
	t := newTree(s)
	t.order(adv)
	for r := 1; r < s.M; r++ {
		t.round(r, adv)
	}
	if s.M > 0 {
		t.lastRound(adv)
	}
	for k := s.M - 2; k >= 0; k-- {
		t.resolve(k)
	}
	return t
}

// Memory returns how many bytes the tree of [System.Levels] takes, for a valid system: two words
// for each node above the leaves, and one for each leaf whose last relay is faulty.
func (s System) Memory() uint64 {
	level, words := uint64(1), uint64(0)
	for k := range max(s.M, 1) {
		words += 2 * level
		if k == s.M-1 {
			words += level * uint64(s.liarsPerLeafParent())
		}
		level *= uint64(s.N - 1 - k)
	}
	return 8 * words
}

// liarsPerLeafParent is the room that the lies told below one node above the leaves are given: one
// for every child if so many are faulty, and never more than there are faulty lieutenants.
func (s System) liarsPerLeafParent() int {
	if s.M == 0 {
		return 0
	}
	return min(ones(s.Faulty), s.N-s.M)
}

// order fills the root: round 0.
func (t *Tree) order(adv LevelAdversary) {
	var liar Liar
	if t.s.SourceFaulty {
		liar = adv(t, 0)
	}
	t.in[0][0] = t.s.order(liar) & t.all
	if t.s.M == 0 {
		t.out[0][0] = t.in[0][0] // the root is the only leaf
	}
}

// round fills level r, which is not the last: first the broadcasts of the correct, then the lies.
func (t *Tree) round(r int, adv LevelAdversary) {
	parents, level := t.in[r-1], t.in[r]
	children := t.s.N - r
	visit(r-1, 0, 0, t.all, func(i int, _ Path, avail uint64) {
		child := i * children
		for rest := avail; rest != 0; rest &= rest - 1 {
			q := bits.TrailingZeros64(rest)
			if t.s.Faulty>>q&1 == 0 {
				level[child] = broadcast(parents[i]>>q&1) & t.all
			}
			child++
		}
	})
	if t.s.Faulty == 0 {
		return
	}
	liar := adv(t, r)
	visit(r-1, 0, 0, t.all, func(i int, path Path, avail uint64) {
		for rest := avail & t.s.Faulty; rest != 0; rest &= rest - 1 {
			q := bits.TrailingZeros64(rest)
			child := i*children + ones(avail&(1<<q-1))
			level[child] = liar(path.child(q), parents[i]>>q&1) & t.all
		}
	})
}

// lastRound fills the leaves of the faulty and resolves the rank above, block by block while the
// block is in the cache. Leaves of the correct are not stored, as their parents tell what they
// are; each counts for all receivers alike and lowers the threshold for the lies.
func (t *Tree) lastRound(adv LevelAdversary) {
	k := t.s.M - 1
	var liar Liar
	if t.s.Faulty != 0 {
		liar = adv(t, t.s.M)
	}
	visit(k, 0, 0, t.all, func(i int, path Path, avail uint64) {
		x := t.in[k][i]
		lies := t.lies[i*t.stride : (i+1)*t.stride]
		told := 0
		for rest := avail & t.s.Faulty; rest != 0; rest &= rest - 1 {
			q := bits.TrailingZeros64(rest)
			lies[told] = liar(path.child(q), x>>q&1) & t.all
			told++
		}
		need := t.need[k] - ones(x&avail&^t.s.Faulty)
		t.out[k][i] = atLeast(lies[:told], need) & t.all
	})
}

// resolve works out the outputs of rank k from those of the rank below it.
func (t *Tree) resolve(k int) {
	children := t.s.N - 1 - k
	below := t.out[k+1]
	for i := range t.out[k] {
		t.out[k][i] = atLeast(below[i*children:(i+1)*children], t.need[k])
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
		i = visit(k-1, i, path.child(q), avail&^(1<<q), do)
	}
	return i
}
