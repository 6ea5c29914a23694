package eig

import (
	"bytes"
	"encoding/binary"
	"slices"

	"parley"
	"parley/agreement/problem"
)

// A level is what one lieutenant relays in one round: the value it holds for
// every path of the round before that does not contain it, in lexicographic
// order of the paths, which are not written. Format:
//
//	count of values, then each: its length and its bytes    (the dictionary)
//	one code per path: 1 byte each for up to 255 values, otherwise 2, otherwise 4
//
// Code 0 is the default, which is never in the dictionary; code i is value i.
// There is one encoding: values are sorted and each one is used.

// dict holds the values that a process has met, the default first and the others
// in order: a code is an index. It does not depend on the order of arrival.
type dict [][]byte

// column is what one process relayed in one round, as codes of the receiver. It
// may share the bytes of the message and is never changed.
type column []byte

// at returns entry i of codes of the given width. In an empty column every entry is the default.
func (c column) at(i, width int) uint32 {
	switch {
	case len(c) == 0:
		return 0
	case width == 1:
		return uint32(c[i])
	case width == 2:
		return uint32(binary.LittleEndian.Uint16(c[2*i:]))
	}
	return binary.LittleEndian.Uint32(c[4*i:])
}

// put sets entry i; for columns under construction.
func (c column) put(i, width int, code uint32) {
	switch width {
	case 1:
		c[i] = byte(code)
	case 2:
		binary.LittleEndian.PutUint16(c[2*i:], uint16(code))
	default:
		binary.LittleEndian.PutUint32(c[4*i:], code)
	}
}

// widthFor returns the number of bytes that codes up to last need.
func widthFor(last int) int {
	switch {
	case last <= 0xFF:
		return 1
	case last <= 0xFFFF:
		return 2
	}
	return 4
}

type level struct {
	dict  dict // the default first
	codes column
	width int
}

// decodeLevel reads a level of the given number of paths. Its codes alias body. The reason is
// empty if the level is valid.
func decodeLevel(body []byte, slots int, otherwise []byte) (l level, reason string) {
	count, rest, err := parley.ReadUvarint(body, uint64(slots))
	if err != nil {
		return level{}, "level with too many values"
	}
	l = level{dict: dict{otherwise}, width: widthFor(int(count))}
	for range count {
		var size uint64
		if size, rest, err = parley.ReadUvarint(rest, problem.MaxValue); err != nil {
			return level{}, "level with an oversized value"
		}
		if size > uint64(len(rest)) {
			return level{}, "level cut short"
		}
		v := rest[:size:size]
		rest = rest[size:]
		if bytes.Equal(v, otherwise) || len(l.dict) > 1 && bytes.Compare(l.dict[len(l.dict)-1], v) >= 0 {
			return level{}, "level with values out of order"
		}
		l.dict = append(l.dict, v)
	}
	if len(rest) != slots*l.width {
		return level{}, "level of the wrong length"
	}
	l.codes = rest
	return l, l.check(slots)
}

// check returns "" if all codes are in the dictionary and all of it is used, otherwise what is wrong.
func (l level) check(slots int) (reason string) {
	if len(l.dict) <= 2 {
		return l.checkBinary()
	}
	used := make([]bool, len(l.dict))
	for i := range slots {
		code := l.codes.at(i, l.width)
		if int(code) >= len(used) {
			return "level with a code out of the dictionary"
		}
		used[code] = true
	}
	if slices.Contains(used[1:], false) {
		return "level with an unused value"
	}
	return ""
}

// checkBinary is check for at most one value besides the default, eight codes at a time.
func (l level) checkBinary() (reason string) {
	var all uint64
	b := l.codes
	for ; len(b) >= 8; b = b[8:] {
		all |= binary.LittleEndian.Uint64(b)
	}
	for _, c := range b {
		all |= uint64(c)
	}
	limit := byte(len(l.dict) - 1)
	var or byte
	for range 8 {
		or |= byte(all)
		all >>= 8
	}
	switch {
	case or > limit:
		return "level with a code out of the dictionary"
	case or < limit:
		return "level with an unused value"
	}
	return ""
}

// encodeLevel writes codes of the given width as a level, without the values that
// they do not use.
func encodeLevel(d dict, codes column, width int) []byte {
	used := make([]bool, len(d))
	for i := range len(codes) / width {
		used[codes.at(i, width)] = true
	}
	renumber := make([]uint32, len(d))
	kept := 0
	size := len(codes) + binary.MaxVarintLen64
	for code := 1; code < len(d); code++ {
		if used[code] {
			kept++
			renumber[code] = uint32(kept)
			size += len(d[code]) + 2
		}
	}
	body := make([]byte, 0, size)
	body = binary.AppendUvarint(body, uint64(kept))
	for code := 1; code < len(d); code++ {
		if used[code] {
			body = parley.AppendBytes(body, d[code])
		}
	}
	if kept == len(d)-1 {
		return append(body, codes...)
	}
	return append(body, recode(codes, width, renumber, widthFor(kept))...)
}

// recode returns codes renumbered, and with another width.
func recode(codes column, width int, number []uint32, into int) column {
	n := len(codes) / width
	out := make(column, n*into)
	for i := range n {
		out.put(i, into, number[codes.at(i, width)])
	}
	return out
}

// code returns the code of a value, and enters the value into the dictionary.
func (t *tree) code(v []byte) uint32 {
	t.learn(dict{v})
	return t.dict.code(v)
}

// code returns the code of a value that is in the dictionary.
func (d dict) code(v []byte) uint32 {
	if bytes.Equal(v, d[0]) {
		return 0
	}
	i, _ := slices.BinarySearchFunc(d[1:], v, bytes.Compare)
	return uint32(i + 1)
}

func (d dict) has(v []byte) bool {
	if bytes.Equal(v, d[0]) {
		return true
	}
	_, found := slices.BinarySearchFunc(d[1:], v, bytes.Compare)
	return found
}

// learn enters values into the dictionary and recodes everything, if a value is new:
// seldom, and in the early rounds, when trees are small.
func (t *tree) learn(values dict) {
	var merged dict
	for _, v := range values {
		if !t.dict.has(v) {
			if merged == nil {
				merged = slices.Clone(t.dict)
			}
			merged = append(merged, v)
		}
	}
	if merged == nil {
		return
	}
	slices.SortFunc(merged[1:], bytes.Compare)
	merged = slices.CompactFunc(merged, bytes.Equal)
	number := make([]uint32, len(t.dict))
	for i, v := range t.dict {
		number[i] = merged.code(v)
	}
	width := widthFor(len(merged) - 1)
	t.root = number[t.root]
	for _, round := range t.columns {
		for id, col := range round {
			if len(col) > 0 && (width != t.width || moved(number)) {
				round[id] = recode(col, t.width, number, width)
			}
		}
	}
	t.dict, t.width = merged, width
}

func moved(number []uint32) bool {
	for i, to := range number {
		if uint32(i) != to {
			return true
		}
	}
	return false
}

// translate returns the codes of a level as this tree's own. If they are the
// same, as when all processes have met the same values, nothing is copied.
func (t *tree) translate(l level) column {
	t.learn(l.dict)
	number := make([]uint32, len(l.dict))
	for i, v := range l.dict {
		number[i] = t.dict.code(v)
	}
	if l.width == t.width && !moved(number) {
		return l.codes
	}
	return recode(l.codes, l.width, number, t.width)
}
