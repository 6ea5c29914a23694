package stream

import (
	"encoding/binary"

	"parley"
)

// item is a value under a name. It is written as the length of the name, the name, the length of
// the value, the value. An entry of a slot's vector is a sequence of items, each behind a byte that is 1
// if the item is ripe, and 0 otherwise.
type item struct {
	name  string
	value []byte
}

func (one item) append(b []byte) []byte {
	b = append(binary.AppendUvarint(b, uint64(len(one.name))), one.name...)
	return append(binary.AppendUvarint(b, uint64(len(one.value))), one.value...)
}

// readItem reads an item at the beginning of b.
func readItem(b []byte) (one item, rest []byte, ok bool) {
	var parts [2][]byte
	for i := range parts {
		size, more, err := parley.ReadUvarint(b, uint64(len(b)))
		if err != nil || size > uint64(len(more)) {
			return item{}, nil, false
		}
		parts[i], b = more[:size:size], more[size:]
	}
	return item{string(parts[0]), append([]byte{}, parts[1]...)}, b, true
}

// eachItem goes through an entry. An entry that cannot be read to its end counts as empty, and so does
// the default.
func eachItem(entry []byte, each func(one item, ripe bool)) {
	type read struct {
		one  item
		ripe bool
	}
	var list []read
	for len(entry) > 0 {
		flag := entry[0]
		one, rest, ok := readItem(entry[1:])
		if !ok || flag > 1 || one.name == "" || len(one.name) > MaxName {
			return
		}
		list, entry = append(list, read{one, flag == 1}), rest
	}
	for _, r := range list {
		each(r.one, r.ripe)
	}
}

// appendValues writes values, each behind its length plus one, or a 0 if there is none.
func appendValues(b []byte, values [][]byte) []byte {
	for _, v := range values {
		if v == nil {
			b = append(b, 0)
			continue
		}
		b = append(binary.AppendUvarint(b, uint64(len(v))+1), v...)
	}
	return b
}
