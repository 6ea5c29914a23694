package parley

import "encoding/binary"

// Reader reads the parts of a Body, one after another: numbers, sets and byte strings, of each of which there is one
// encoding. After the first that does not fit Bad is set, nothing is left, and everything else is zero. Byte strings
// alias what is read, so that no length takes memory.
type Reader struct {
	Rest []byte
	Bad  bool
}

// Number reads a number of at most limit.
func (r *Reader) Number(limit uint64) uint64 {
	if r.Bad {
		return 0
	}
	x, rest, err := ReadUvarint(r.Rest, limit)
	r.Rest, r.Bad = rest, err != nil
	return x
}

// Count reads a number of items, each of which takes at least one of the bytes that are left.
func (r *Reader) Count() uint64 { return r.Number(uint64(len(r.Rest))) }

// ID reads one of n processes.
func (r *Reader) ID(n int) ID { return ID(r.Number(uint64(n) - 1)) }

// Set reads what AppendSet wrote, of processes below n.
func (r *Reader) Set(n int) Set {
	if r.Bad {
		return Set{}
	}
	set, rest, err := ReadSet(r.Rest, n)
	r.Rest, r.Bad = rest, err != nil
	return set
}

// Bytes reads what AppendBytes wrote.
func (r *Reader) Bytes() []byte { return r.Take(r.Count()) }

// Take reads so many bytes.
func (r *Reader) Take(size uint64) []byte {
	if r.Bad = r.Bad || size > uint64(len(r.Rest)); r.Bad {
		r.Rest = nil
		return nil
	}
	s := r.Rest[:size:size]
	r.Rest = r.Rest[size:]
	return s
}

// Done tells whether everything was read and fitted.
func (r *Reader) Done() bool { return !r.Bad && len(r.Rest) == 0 }

// AppendBytes appends a byte string with its length in front.
func AppendBytes[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// AppendSet appends a set as how many processes it has and the gaps between them,
// in order: one encoding of each set.
func AppendSet(buf []byte, set Set) []byte {
	buf = binary.AppendUvarint(buf, uint64(set.Len()))
	next := ID(0)
	for id := range set.All() {
		buf = binary.AppendUvarint(buf, uint64(id-next))
		next = id + 1
	}
	return buf
}

// ReadSet reads what AppendSet wrote, a set of processes below n, and returns the
// bytes behind it.
func ReadSet(b []byte, n int) (set Set, rest []byte, err error) {
	count, b, err := ReadUvarint(b, uint64(n))
	if err != nil {
		return Set{}, nil, err
	}
	next := uint64(0)
	for range count {
		var gap uint64
		if gap, b, err = ReadUvarint(b, uint64(n)); err != nil {
			return Set{}, nil, err
		}
		if next += gap; next >= uint64(n) {
			return Set{}, nil, ErrRange
		}
		set.Add(ID(next))
		next++
	}
	return set, b, nil
}
