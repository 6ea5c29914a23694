package byzantine

import (
	"crypto/sha256"
	"encoding/binary"

	"parley"
)

// A batch is what one process says in one slot: some of its requests, which are
// numbered from 1. Format:
//
//	number of the first request, how many there are, then each: its length and its bytes
//
// There is one encoding, and a batch has one request at least.

// overhead is how many bytes a request takes up in a batch beside its own, at most, and
// head what comes before the first.
const (
	overhead = 5
	head     = 2 * binary.MaxVarintLen64
)

// encode makes a batch of requests with consecutive numbers.
func encode(first uint64, requests [][]byte) []byte {
	size := head
	for _, r := range requests {
		size += overhead + len(r)
	}
	body := make([]byte, 0, size)
	body = binary.AppendUvarint(body, first)
	body = binary.AppendUvarint(body, uint64(len(requests)))
	for _, r := range requests {
		body = binary.AppendUvarint(body, uint64(len(r)))
		body = append(body, r...)
	}
	return body
}

// well tells whether bytes are a batch of no more than the given size.
func well(body []byte, limit int) bool {
	return len(body) <= limit && each(body, func(uint64, []byte) {})
}

// each visits the requests of a batch, as far as it can be read, and tells whether it
// can be to its end.
func each(body []byte, visit func(number uint64, request []byte)) bool {
	first, body, err := parley.ReadUvarint(body, 1<<62)
	if err != nil || first == 0 {
		return false
	}
	count, body, err := parley.ReadUvarint(body, uint64(len(body)))
	if err != nil || count == 0 {
		return false
	}
	for i := range count {
		var size uint64
		if size, body, err = parley.ReadUvarint(body, uint64(len(body))); err != nil || size > uint64(len(body)) {
			return false
		}
		visit(first+i, body[:size:size])
		body = body[size:]
	}
	return len(body) == 0
}

// digest is what is agreed on in the place of a batch.
func digest(body []byte) []byte {
	d := sha256.Sum256(body)
	return d[:]
}
