package sliced

import "math/bits"

// Liar is an adversary: a pure function. It returns the word that a faulty sender sends in the message with this
// path. Bit r goes to lieutenant r. Bits beyond the last lieutenant are ignored. The last relay on the path is the
// sender. The source sends path 0. The argument held, 0 or 1, is the value that the sender would relay if it were
// correct. For the source, this is its own value.
//
// An engine may call it in any order, and from several workers at a time.
type Liar func(path Path, held uint64) uint64

// TwoFaced returns a liar that sends every receiver of every message a bit drawn at random,
// whatever it holds. The bits depend only on the seed and the path.
func TwoFaced(seed uint64) Liar {
	// Multiply, fold, multiply and fold again: two multiplications spread a path's few bits, which
	// differ from a sibling's in one byte only, over all receivers. A sweep calls it hundreds of
	// millions of times, so a stronger generator would be too slow.
	const (
		spread = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio
		stir   = 0xd6e8feb86659fd93 // an odd constant with irregular bits
	)
	key := (seed ^ seed>>32 ^ stir) * stir
	key ^= key >> 29
	return func(path Path, _ uint64) uint64 {
		x := (uint64(path) + key) * spread
		x ^= x >> 32
		hi, lo := bits.Mul64(x, stir)
		return hi ^ lo
	}
}
