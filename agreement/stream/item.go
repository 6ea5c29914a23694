package stream

import (
	"bytes"
	"encoding/binary"

	"parley"
)

// item is a value under a name. Its encoding is the length of the name, the name, the length of
// the value, the value. An entry of a slot's vector is a sequence of items, each after a byte that is 1
// if the item is ripe, and 0 otherwise.
type item struct {
	name  string
	value []byte
}

func (one item) append(b []byte) []byte {
	return parley.AppendBytes(parley.AppendBytes(b, one.name), one.value)
}

func readItem(b []byte) (one item, rest []byte, ok bool) {
	r := parley.Reader{Rest: b}
	one = item{string(r.Bytes()), bytes.Clone(r.Bytes())}
	return one, r.Rest, !r.Bad
}

type entryItem struct {
	item
	ripe bool
}

// readEntry reads an entry. An entry that does not parse to its end counts as empty, and so does the default.
func readEntry(entry []byte) (list []entryItem) {
	for len(entry) > 0 {
		flag := entry[0]
		one, rest, ok := readItem(entry[1:])
		if !ok || flag > 1 || one.name == "" || len(one.name) > MaxName {
			return nil
		}
		list, entry = append(list, entryItem{one, flag == 1}), rest
	}
	return list
}

// appendValues writes values, each after its length plus one, or a 0 if there is none.
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

// optional reads bytes after their length plus one; a 0 means nil.
func optional(r *parley.Reader) []byte {
	if size := r.Number(uint64(len(r.Rest)) + 1); size > 0 {
		return r.Take(size - 1)
	}
	return nil
}
