package parley

import (
	"bytes"
	"iter"
	"math/bits"
)

// Set is a set of processes. The zero value is the empty set. Compare sets with ==.
type Set [MaxProcesses / 64]uint64

// SetOf returns the set of the given processes.
func SetOf(ids ...ID) Set {
	var s Set
	for _, id := range ids {
		s.Add(id)
	}
	return s
}

// Everyone returns the set of the processes 0..n-1.
func Everyone(n int) Set {
	var s Set
	for i := range n {
		s.Add(ID(i))
	}
	return s
}

// Add adds id and reports whether it was new. It ignores an id of MaxProcesses
// or more, which a peer may send.
func (s *Set) Add(id ID) bool {
	if id >= MaxProcesses {
		return false
	}
	w, b := id/64, uint64(1)<<(id%64)
	fresh := s[w]&b == 0
	s[w] |= b
	return fresh
}

// Remove removes id from the set.
func (s *Set) Remove(id ID) {
	if id < MaxProcesses {
		s[id/64] &^= 1 << (id % 64)
	}
}

// Has reports whether id is in the set. An id of MaxProcesses or more never is.
func (s Set) Has(id ID) bool { return id < MaxProcesses && s[id/64]>>(id%64)&1 == 1 }

// Len returns how many processes are in the set.
func (s Set) Len() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// Minus returns the processes of s that are not in t.
func (s Set) Minus(t Set) Set {
	for i := range s {
		s[i] &^= t[i]
	}
	return s
}

// Plus returns the processes of s and those of t.
func (s Set) Plus(t Set) Set {
	for i := range s {
		s[i] |= t[i]
	}
	return s
}

// All iterates over the set in rising order.
func (s Set) All() iter.Seq[ID] {
	return func(yield func(ID) bool) {
		for i, w := range s {
			for ; w != 0; w &= w - 1 {
				if !yield(ID(i*64 + bits.TrailingZeros64(w))) {
					return
				}
			}
		}
	}
}

// Tally counts votes of processes for values, one vote per process. The zero
// value is an empty tally; Reset keeps its memory.
type Tally struct {
	voters Set
	few    [2]counted // the first values; most tallies have no more than two
	more   []counted
	values int
}

type counted struct {
	value []byte
	votes int
}

func (t *Tally) at(i int) *counted {
	if i < len(t.few) {
		return &t.few[i]
	}
	return &t.more[i-len(t.few)]
}

// Vote counts the vote of a process and reports whether it was its first. It
// keeps value without copying it.
func (t *Tally) Vote(from ID, value []byte) bool {
	if !t.voters.Add(from) {
		return false
	}
	for i := range t.values {
		if c := t.at(i); bytes.Equal(c.value, value) {
			c.votes++
			return true
		}
	}
	if t.values >= len(t.few) {
		t.more = append(t.more[:t.values-len(t.few)], counted{})
	}
	*t.at(t.values) = counted{value, 1}
	t.values++
	return true
}

// Of returns the number of votes for the value.
func (t *Tally) Of(value []byte) int {
	for i := range t.values {
		if c := t.at(i); bytes.Equal(c.value, value) {
			return c.votes
		}
	}
	return 0
}

// Len returns how many processes have voted.
func (t *Tally) Len() int { return t.voters.Len() }

// Best returns the value with the most votes, and the number of its votes. On a tie it returns the smallest of these
// values, so the order of the votes does not matter.
func (t *Tally) Best() (value []byte, votes int) {
	for i := range t.values {
		if c := t.at(i); c.votes > votes || c.votes == votes && bytes.Compare(c.value, value) < 0 {
			value, votes = c.value, c.votes
		}
	}
	return value, votes
}

// Majority returns the value with more than half of the votes. If there is no such value, it returns the argument
// otherwise.
func (t *Tally) Majority(otherwise []byte) []byte {
	if v, votes := t.Best(); 2*votes > t.Len() {
		return v
	}
	return otherwise
}

// Reset empties the tally.
func (t *Tally) Reset() {
	t.voters = Set{}
	t.values = 0
}
