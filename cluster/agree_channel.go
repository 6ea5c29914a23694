package cluster

import (
	"parley"
	"parley/agreement/stream"
	"parley/cluster/kernel"
)

// channelOf returns the channel of a stream.
func channelOf(t stream.Key) uint32 {
	return kernel.FirstStream + (uint32(t.Algorithm)<<7 | uint32(t.M)<<4 | uint32(t.Source))
}

// streamOf returns the stream with a channel. Its Check says whether there is such a stream.
func streamOf(channel uint32) stream.Key {
	x := channel - kernel.FirstStream
	return stream.Key{Algorithm: Algorithm(x >> 7), M: int(x >> 4 & 7), Source: parley.ID(x & 15)}
}

// streamName returns the name by which the disk, people and signatures know a stream.
func streamName(t stream.Key) string { return "agree/" + t.String() }
