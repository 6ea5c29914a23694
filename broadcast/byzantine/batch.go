package byzantine

import (
	"encoding/binary"

	"golang.org/x/crypto/blake2b"

	"parley"
)

// A batch is what one process says in one slot: some of its requests, which are
// numbered from 1, and for whom it wishes that the era ends. Format:
//
//	number of the first request, how many there are, then each: its length and its bytes;
//	then each wish: the process, in growing order, and the number of its life
//
// There is one encoding, and a batch has one request or one wish at least.

// overhead is how many bytes a request takes up in a batch beside its own, at most, head
// what comes before the first, and wishSize what a wish takes up.
const (
	overhead = 5
	head     = 2 * binary.MaxVarintLen64
	wishSize = 2 + binary.MaxVarintLen64
)

// wish is one for a process that asks to join.
type wish struct {
	whom parley.ID
	life uint64
}

// encode makes a batch of requests with consecutive numbers, and of wishes.
func encode(first uint64, requests [][]byte, wishes ...wish) []byte {
	size := head + wishSize*len(wishes)
	for _, r := range requests {
		size += overhead + len(r)
	}
	body := make([]byte, 0, size)
	body = binary.AppendUvarint(body, first)
	body = binary.AppendUvarint(body, uint64(len(requests)))
	for _, r := range requests {
		body = parley.AppendBytes(body, r)
	}
	for _, w := range wishes {
		body = binary.AppendUvarint(body, uint64(w.whom))
		body = binary.AppendUvarint(body, w.life)
	}
	return body
}

// well tells whether bytes are a batch of no more than the given size.
func well(body []byte, limit int) bool {
	wishes, ok := each(body, func(uint64, []byte) {})
	return ok && len(body) <= limit && eachWish(wishes, func(wish) {})
}

// each visits the requests of a batch, as far as it can be read, and tells whether it
// can be to its wishes, which it returns.
func each(body []byte, visit func(number uint64, request []byte)) (wishes []byte, ok bool) {
	r := parley.Reader{Rest: body}
	first, count := r.Number(1<<62), r.Count()
	if r.Bad || first == 0 || count == 0 && len(r.Rest) == 0 {
		return nil, false
	}
	for i := range count {
		request := r.Bytes()
		if r.Bad {
			return nil, false
		}
		visit(first+i, request)
	}
	return r.Rest, true
}

// eachWish visits wishes, as far as they can be read, and tells whether all can be.
func eachWish(wishes []byte, visit func(wish)) bool {
	next := parley.ID(0)
	for r := (parley.Reader{Rest: wishes}); len(r.Rest) > 0; {
		w := wish{r.ID(parley.MaxProcesses), r.Number(1 << 63)}
		if r.Bad || w.whom < next || w.life == 0 {
			return false
		}
		visit(w)
		next = w.whom + 1
	}
	return true
}

// claimSize is how many bytes a claim may have.
func claimSize(n int) int { return 1 + (n+1)*binary.MaxVarintLen64 }

// beginning is the first eight bytes of a digest, or of what too many liars have made of one.
func beginning(digest []byte) uint64 {
	var b [8]byte
	copy(b[:], digest)
	return binary.BigEndian.Uint64(b[:])
}

// markOf is the mark of what was agreed on in a slot, and in those before, which have one too. It
// is never 0.
func markOf(before uint64, decided []parley.Effect) uint64 {
	body := binary.BigEndian.AppendUint64(make([]byte, 0, 8+9*len(decided)), before)
	for i := range decided {
		body = binary.BigEndian.AppendUint64(append(body, byte(decided[i].To)), decided[i].Msg.Value)
	}
	return max(1, beginning(digest(body)))
}

// digest is what is agreed on in the place of a batch. Hashing is the largest part of what an
// order costs, and BLAKE2b takes a quarter of the time of SHA-256 where the processor has no
// instruction for that.
func digest(body []byte) []byte {
	d := blake2b.Sum256(body)
	return d[:]
}
