package problem

import (
	"encoding/binary"

	"parley"
)

// Reader reads numbers, sets and byte strings, one after another. After the first that does not fit Bad is set, and
// everything else is zero.
type Reader struct {
	Rest []byte
	Bad  bool
}

// Number reads a number of at most limit.
func (r *Reader) Number(limit uint64) (x uint64) {
	if !r.Bad {
		var err error
		x, r.Rest, err = parley.ReadUvarint(r.Rest, limit)
		r.Bad = err != nil
	}
	return x
}

// Count reads a number of items, each of which takes at least one of the bytes that are left.
func (r *Reader) Count() uint64 { return r.Number(uint64(len(r.Rest))) }

// ID reads one of n processes.
func (r *Reader) ID(n int) parley.ID { return parley.ID(r.Number(uint64(n) - 1)) }

// Set reads what AppendSet wrote, of processes below n.
func (r *Reader) Set(n int) (set parley.Set) {
	if !r.Bad {
		var err error
		set, r.Rest, err = ReadSet(r.Rest, n)
		r.Bad = err != nil
	}
	return set
}

// Bytes reads what AppendBytes wrote, without a copy.
func (r *Reader) Bytes() (s []byte) {
	if size := r.Count(); !r.Bad && size <= uint64(len(r.Rest)) {
		s, r.Rest = r.Rest[:size:size], r.Rest[size:]
	} else {
		r.Bad = true
	}
	return s
}

// Done tells whether everything was read and fitted.
func (r *Reader) Done() bool { return !r.Bad && len(r.Rest) == 0 }

// AppendBytes appends a byte string with its length in front.
func AppendBytes(b, s []byte) []byte { return append(binary.AppendUvarint(b, uint64(len(s))), s...) }
