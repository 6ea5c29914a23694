package agree

import (
	"parley"
	"parley/agreement/stream"
	"parley/cluster/kernel"
)

// Channel returns the channel of a stream.
func Channel(t stream.Key) uint32 {
	return kernel.FirstStream + (uint32(t.Algorithm)<<7 | uint32(t.M)<<4 | uint32(t.Source))
}

// StreamOf returns the stream of a channel. The method Check of the result reports whether there is such a
// stream.
func StreamOf(channel uint32) stream.Key {
	x := channel - kernel.FirstStream
	return stream.Key{Algorithm: stream.Algorithm(x >> 7), M: int(x >> 4 & 7), Source: parley.ID(x & 15)}
}

// Name returns the name of a stream in the store, in logs, and in signatures.
func Name(t stream.Key) string { return "agree/" + t.String() }
