package diffusion

import (
	"cmp"
	"slices"

	"parley"
)

// numbers is a set of sequence numbers from 1 on, nearly all of them from the
// first on without a gap: ranges, in order, that do not touch.
type numbers struct{ ranges []span }

// span is the numbers from first to last, both included.
type span struct{ first, last uint64 }

// next is the first number that is missing.
func (n *numbers) next() uint64 {
	if len(n.ranges) == 0 || n.ranges[0].first != 1 {
		return 1
	}
	return n.ranges[0].last + 1
}

// find returns the first range that does not end before seq.
func (n *numbers) find(seq uint64) int {
	i, _ := slices.BinarySearchFunc(n.ranges, seq, func(r span, seq uint64) int { return cmp.Compare(r.last, seq) })
	return i
}

func (n *numbers) has(seq uint64) bool {
	i := n.find(seq)
	return i < len(n.ranges) && n.ranges[i].first <= seq
}

// add puts in a number that is not in the set. Ranges that then touch become one.
func (n *numbers) add(seq uint64) {
	i := n.find(seq)
	below := i > 0 && n.ranges[i-1].last == seq-1
	above := i < len(n.ranges) && n.ranges[i].first == seq+1
	switch {
	case below && above:
		n.ranges[i-1].last = n.ranges[i].last
		n.ranges = slices.Delete(n.ranges, i, i+1)
	case below:
		n.ranges[i-1].last = seq
	case above:
		n.ranges[i].first = seq
	default:
		n.ranges = slices.Insert(n.ranges, i, span{seq, seq})
	}
}

// hold finds a message among those that are held, and tells whether it was not
// there.
func (l *life) hold(m parley.Msg) (i int, first bool) {
	i, found := slices.BinarySearchFunc(l.held, m.Seq, func(h held, seq uint64) int { return cmp.Compare(h.seq, seq) })
	if !found {
		l.held = slices.Insert(l.held, i, held{seq: m.Seq, body: m.Body})
	}
	return i, !found
}

// release lets go of a message that is held.
func (l *life) release(i int) { l.held = slices.Delete(l.held, i, i+1) }

func (l *life) state(v *parley.Vars) {
	parley.Slice(v, "delivered", &l.delivered.ranges, func(_ int, r *span) {
		parley.Num(v, "first", &r.first)
		parley.Num(v, "last", &r.last)
	})
	parley.Slice(v, "held", &l.held, func(_ int, h *held) {
		parley.Num(v, "seq", &h.seq)
		v.Set("copies", &h.copies)
		v.Bytes("body", &h.body)
	})
}
