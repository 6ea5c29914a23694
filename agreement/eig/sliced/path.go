package sliced

import "math/bits"

// maxLieutenants and maxFaults keep every quantity in one machine word: a bit per receiver, and a
// byte per relay of a path.
const (
	maxLieutenants = 64
	maxFaults      = 8
)

// Path names a node of the information tree, and the message that fills it: the relays after the
// source, packed a byte each as lieutenant index + 1, the newest in the low byte. Path 0 is the
// source's own message; the path of a round r message has r relays, at most 8.
//
// The article writes the source first and appends each sender; the source stands on every path
// and is left out here.
type Path uint64

// Len returns the number of relays, which is the round of the message and the rank of the node.
func (p Path) Len() int { return (bits.Len64(uint64(p)) + 7) / 8 }

// Last returns the lieutenant index of the newest relay, the sender of the message, or -1 for
// path 0, whose sender is the source.
func (p Path) Last() int { return int(p&0xff) - 1 }

// Append returns the path of the message in which lieutenant q relays p. It panics if p has eight
// relays already.
func (p Path) Append(q int) Path {
	if p>>(8*(maxFaults-1)) != 0 {
		panic("sliced: a path has at most 8 relays")
	}
	return p.child(q)
}

// child is Append without the check.
func (p Path) child(q int) Path { return p<<8 | Path(q+1) }

// Parent returns the path without its newest relay; the parent of path 0 is path 0.
func (p Path) Parent() Path { return p >> 8 }

// Relays returns the lieutenant indices along the path, oldest first.
func (p Path) Relays() []int {
	relays := make([]int, p.Len())
	for i := len(relays) - 1; i >= 0; i-- {
		relays[i] = p.Last()
		p = p.Parent()
	}
	return relays
}

// in reports whether p is a path of a tree of l lieutenants and m+1 ranks: not too long, every
// relay a lieutenant, none twice.
func (p Path) in(l, m int) bool {
	if p.Len() > m {
		return false
	}
	var used uint64
	for ; p != 0; p = p.Parent() {
		q := p.Last()
		if q < 0 || q >= l || used>>q&1 != 0 {
			return false
		}
		used |= 1 << q
	}
	return true
}

// used returns the set of relays of a path.
func (p Path) used() uint64 {
	var set uint64
	for ; p != 0; p >>= 8 {
		set |= 1 << (p&0xff - 1)
	}
	return set
}

// Index returns the position of p among the paths of its length over l lieutenants, which a level
// holds in lexicographic order. Each relay is a digit in a number system whose bases shrink, its
// rank among the lieutenants not yet used; so the children of node i of level k are exactly the
// nodes i*(l-k) .. (i+1)*(l-k)-1 of level k+1, in order of the relaying lieutenant.
//
// p must be acyclic, its relays below l.
func Index(p Path, l int) uint64 {
	var index, used uint64
	k := p.Len()
	for j := range k {
		q := uint(p>>(8*(k-1-j))&0xff) - 1
		rank := int(q) - bits.OnesCount64(used&(1<<q-1))
		index = index*uint64(l-j) + uint64(rank)
		used |= 1 << q
	}
	return index
}

// PathAt returns the path of length k over l lieutenants at a position: the inverse of Index.
func PathAt(index uint64, k, l int) Path {
	var rank [maxFaults]int
	for j := k - 1; j >= 0; j-- {
		base := uint64(l - j)
		rank[j] = int(index % base)
		index /= base
	}
	free := everyone(l)
	var p Path
	for _, d := range rank[:k] {
		rest := free
		for range d {
			rest &= rest - 1
		}
		q := bits.TrailingZeros64(rest)
		free &^= 1 << q
		p = p.child(q)
	}
	return p
}

// everyone is the set of l lieutenants.
func everyone(l int) uint64 { return 1<<l - 1 }

// broadcast is the word of a sender that tells every receiver the same bit.
func broadcast(bit uint64) uint64 { return -bit }
