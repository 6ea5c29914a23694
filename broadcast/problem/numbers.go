package problem

import (
	"cmp"
	"slices"

	"parley"
)

// Numbers is a set of sequence numbers from 1, stored as ordered ranges that do not touch. It is compact if
// nearly all numbers form one range from 1. The zero value is the empty set.
type Numbers []span

// span is the range of numbers from first to last, both included.
type span struct{ first, last uint64 }

// Next returns the first missing number.
func (n Numbers) Next() uint64 {
	if len(n) == 0 || n[0].first != 1 {
		return 1
	}
	return n[0].last + 1
}

// find returns the first range that does not end before seq, and whether seq is in it.
func (n Numbers) find(seq uint64) (int, bool) {
	i, _ := slices.BinarySearchFunc(n, seq, func(r span, seq uint64) int { return cmp.Compare(r.last, seq) })
	return i, i < len(n) && n[i].first <= seq
}

// Has reports whether a number is in the set.
func (n Numbers) Has(seq uint64) bool {
	_, has := n.find(seq)
	return has
}

// Add adds a number and reports whether it is new. It joins ranges that then touch.
func (n *Numbers) Add(seq uint64) bool {
	list := *n
	i, has := list.find(seq)
	if has {
		return false
	}
	below := i > 0 && list[i-1].last == seq-1
	above := i < len(list) && list[i].first == seq+1
	switch {
	case below && above:
		list[i-1].last = list[i].last
		*n = slices.Delete(list, i, i+1)
	case below:
		list[i-1].last = seq
	case above:
		list[i].first = seq
	default:
		*n = slices.Insert(list, i, span{seq, seq})
	}
	return true
}

// Fill closes the lowest gap if there are more ranges than most: the missing numbers count as received.
func (n *Numbers) Fill(most int) {
	if list := *n; len(list) > most {
		list[1].first = list[0].first
		*n = slices.Delete(list, 0, 1)
	}
}

// State visits the ranges.
func (n *Numbers) State(v *parley.Vars, name string) {
	parley.Slice(v, name, (*[]span)(n), func(_ int, r *span) {
		parley.Num(v, "first", &r.first)
		parley.Num(v, "last", &r.last)
	})
}
