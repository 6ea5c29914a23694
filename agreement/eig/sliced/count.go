package sliced

import "math/bits"

// Size counts a system's information trees.
type Size struct {
	Leaves     uint64 // leaves of one process's tree
	Nodes      uint64 // nodes of one process's tree, leaves included
	Deliveries uint64 // values delivered in the whole system: n-1 for each node, own copies included
}

// Count returns the size of the trees of n processes after rounds 0..m: rank k holds (n-1)(n-2)...(n-k) nodes. It
// reports false in three cases: n < m+2, so that a path would run out of relays; m < 0; or a count does not fit in 64
// bits.
func Count(n, m int) (Size, bool) {
	if m < 0 || n < m+2 {
		return Size{}, false
	}
	level, nodes := uint64(1), uint64(1)
	for k := 1; k <= m; k++ {
		hi, lo := bits.Mul64(level, uint64(n-k))
		sum, carry := bits.Add64(nodes, lo, 0)
		if hi|carry != 0 {
			return Size{}, false
		}
		level, nodes = lo, sum
	}
	hi, deliveries := bits.Mul64(nodes, uint64(n-1))
	return Size{Leaves: level, Nodes: nodes, Deliveries: deliveries}, hi == 0
}
