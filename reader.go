package parley

import "encoding/binary"

// Reader reads the parts of a Body, one after another: numbers, sets and byte strings. Each part has exactly one
// encoding. The first part that is invalid sets Bad. From then on Rest is empty, and every further part reads as
// zero. Byte strings alias the input, so a false length in the input allocates no memory.
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

// Count reads a number of items. The number is invalid if it is greater than the number of remaining bytes, because
// each item takes at least one byte.
func (r *Reader) Count() uint64 { return r.Number(uint64(len(r.Rest))) }

// ID reads the ID of one of n processes.
func (r *Reader) ID(n int) ID { return ID(r.Number(uint64(n) - 1)) }

// Set reads a set of processes below n that AppendSet wrote.
func (r *Reader) Set(n int) Set {
	if r.Bad {
		return Set{}
	}
	set, rest, err := ReadSet(r.Rest, n)
	r.Rest, r.Bad = rest, err != nil
	return set
}

// Bytes reads a byte string that AppendBytes wrote.
func (r *Reader) Bytes() []byte { return r.Take(r.Count()) }

// Take reads size bytes.
func (r *Reader) Take(size uint64) []byte {
	if r.Bad = r.Bad || size > uint64(len(r.Rest)); r.Bad {
		r.Rest = nil
		return nil
	}
	s := r.Rest[:size:size]
	r.Rest = r.Rest[size:]
	return s
}

// Done reports whether all bytes were read and every part was valid.
func (r *Reader) Done() bool { return !r.Bad && len(r.Rest) == 0 }

// AppendBytes appends a byte string with its length in front.
func AppendBytes[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// AppendSet appends the number of processes in a set and the gaps between them
// in order, so that each set has one encoding.
func AppendSet(buf []byte, set Set) []byte {
	buf = binary.AppendUvarint(buf, uint64(set.Len()))
	next := ID(0)
	for id := range set.All() {
		buf = binary.AppendUvarint(buf, uint64(id-next))
		next = id + 1
	}
	return buf
}

// ReadSet reads a set of processes below n that AppendSet wrote, and returns the
// bytes after it.
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
