package sliced

import "math/bits"

// The rank above the leaves has nearly all the nodes that a depth-first engine visits, and nearly
// all the work is calling the liar for it. So it is evaluated from one rank higher, where
// the list of faulty lieutenants is made once for a whole block of siblings.

// leafGrandparent is output for the rank two above the leaves if at most seven of the available
// lieutenants are faulty. A node of the rank below is of one of two kinds: that of a faulty relay, with
// any word and one faulty relay fewer below, and that of a correct relay, with one bit for all.
func (w *walker) leafGrandparent(k int, path Path, avail, x uint64) uint64 {
	outs := &w.outs[k]
	need := w.need[k+1]
	correct := avail &^ w.faulty
	var liars [8]uint8 // the indices of the available faulty lieutenants, in any order
	count := 0
	for rest := avail & w.faulty; rest != 0; rest &= rest - 1 {
		liars[count&7] = uint8(bits.TrailingZeros64(rest))
		count++
	}
	i := 0
	for j := count - 1; j >= 0; j-- {
		// Each faulty lieutenant in turn comes last in the list, out of reach of its own node; those
		// before place j have not moved yet.
		last := (count - 1) & 7
		liars[j&7], liars[last] = liars[last], liars[j&7]
		child := path.Append(int(liars[last]))
		word := w.word(child, x)
		outs[i&63] = leafParent(w.liar, child, word, &liars, last, need-ones(word&correct))
		i++
	}
	siblings := ones(correct) - 1
	for rest := correct; rest != 0; rest &= rest - 1 {
		q := bits.TrailingZeros64(rest)
		word := broadcast(x >> q & 1)
		outs[i&63] = leafParent(w.liar, path.Append(q), word, &liars, count, need-int(word)&siblings)
		i++
	}
	return atLeast(outs[:i], w.need[k])
}

// leafParent returns the outputs of a node above the leaves: which receivers get need ones or more
// from the first count liars, at most 7, about a word. The calls are unrolled because Go keeps no
// register across a call: a loop would store and load its state once for each.
func leafParent(l Liar, path Path, word uint64, liars *[8]uint8, count, need int) uint64 {
	var said [7]uint64
	first := path.Append(0)
	switch count {
	case 7:
		said[6] = l(first+Path(liars[6]), word>>(liars[6]&63)&1)
		fallthrough
	case 6:
		said[5] = l(first+Path(liars[5]), word>>(liars[5]&63)&1)
		fallthrough
	case 5:
		said[4] = l(first+Path(liars[4]), word>>(liars[4]&63)&1)
		fallthrough
	case 4:
		said[3] = l(first+Path(liars[3]), word>>(liars[3]&63)&1)
		fallthrough
	case 3:
		said[2] = l(first+Path(liars[2]), word>>(liars[2]&63)&1)
		fallthrough
	case 2:
		said[1] = l(first+Path(liars[1]), word>>(liars[1]&63)&1)
		fallthrough
	case 1:
		said[0] = l(first+Path(liars[0]), word>>(liars[0]&63)&1)
	}
	// Often the correct relays have decided for every receiver; the lies are then fetched but need
	// not be counted.
	if need <= 0 {
		return ^uint64(0)
	}
	if need > count {
		return 0
	}
	return atLeast7(&said, need)
}
