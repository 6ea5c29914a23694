package explore

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// table numbers equal keys: each distinct key gets one number, from 1. Reading the value of a number takes
// no lock.
type table[T any] struct {
	shards [32]struct {
		sync.Mutex
		numbers map[string]uint32
	}
	chunks [1 << 14]atomic.Pointer[[chunk]T]
	mu     sync.Mutex // adds chunks
	last   atomic.Uint32
}

const (
	chunkBits = 12
	chunk     = 1 << chunkBits
)

var seed = maphash.MakeSeed()

// number returns the number of a key, and calls fill for its value if the key is new.
func (t *table[T]) number(key []byte, fill func(at *T)) uint32 {
	s := &t.shards[maphash.Bytes(seed, key)%uint64(len(t.shards))]
	s.Lock()
	defer s.Unlock()
	if n, ok := s.numbers[string(key)]; ok {
		return n
	}
	n := t.last.Add(1)
	if int(n>>chunkBits) >= len(t.chunks) {
		panic(tooLarge("there are more states of processes or messages than can be numbered"))
	}
	c := &t.chunks[n>>chunkBits]
	if c.Load() == nil {
		t.mu.Lock()
		if c.Load() == nil {
			c.Store(new([chunk]T))
		}
		t.mu.Unlock()
	}
	fill(&c.Load()[n%chunk])
	if s.numbers == nil {
		s.numbers = make(map[string]uint32)
	}
	s.numbers[string(key)] = n
	return n
}

// at returns the value of a number.
func (t *table[T]) at(n uint32) *T { return &t.chunks[n>>chunkBits].Load()[n%chunk] }

// digest returns the share of one part of a state in the state's fingerprint. The fingerprint is the sum of
// all shares, so a transition changes only the summands of changed parts. The share depends on the contents
// of the part and not on its number, which differs from search to search.
func digest(role byte, key []byte) uint64 {
	h := sha256.New()
	h.Write([]byte{role})
	h.Write(key)
	var sum [sha256.Size]byte
	return binary.LittleEndian.Uint64(h.Sum(sum[:0]))
}

// spread turns a sum into a fingerprint, never 0.
func spread(x uint64) uint64 {
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	x *= 0xd6e8feb86659fd93
	x ^= x >> 32
	if x == 0 {
		return 1
	}
	return x
}
