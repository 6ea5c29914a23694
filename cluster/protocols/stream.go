package protocols

import (
	"time"

	"parley"
	"parley/agreement/stream"
	"parley/lockstep"
	"parley/trace"
)

// Channel returns the channel of a stream.
func Channel(t stream.Key) uint32 {
	return FirstStream + (uint32(t.Algorithm)<<7 | uint32(t.M)<<4 | uint32(t.Source))
}

// StreamOf returns the stream of a channel. The method Check of the result reports whether there is such a
// stream.
func StreamOf(channel uint32) stream.Key {
	x := channel - FirstStream
	return stream.Key{Algorithm: stream.Algorithm(x >> 7), M: int(x >> 4 & 7), Source: parley.ID(x & 15)}
}

// StreamName returns the name of a stream in the store, in logs, and in signatures.
func StreamName(t stream.Key) string { return "agree/" + t.String() }

// Schedule returns the schedule of streams, with rounds of the given length. A restarted node may begin a slot two
// messages after the first one, so a round must have room for three messages and five times the slack.
func Schedule(round time.Duration) lockstep.Schedule {
	return lockstep.Schedule{
		Delta: parley.Tick(round), Slack: parley.Tick(round) * 7 / 50, Early: true, OnDemand: true,
	}
}

// OfSlot returns the protocol of one slot and its last round, given the header of the trace of a stream in rounds. In
// that trace, the Value of a frame and the Seq of a decision are the number of the slot. For other traces ok is false.
func OfSlot(h trace.Header) (p parley.Protocol, last int, ok bool) {
	t, ok := described(h)
	if !ok || !t.Timed() {
		return parley.Protocol{}, 0, false
	}
	rounds := t.Rounds(h.N)
	return lockstep.Of(rounds, Schedule(time.Duration(max(h.Node.Round, 1)))), rounds.Last, true
}

// OfStream returns the protocol of a stream without rounds, given the header of its trace. For other traces ok is
// false.
func OfStream(h trace.Header) (p parley.Protocol, ok bool) {
	t, ok := described(h)
	if !ok || t.Timed() {
		return parley.Protocol{}, false
	}
	return stream.New(stream.Config{Key: t, N: h.N, Window: 1}, Schedule(time.Duration(max(h.Node.Round, 1)))), true
}

// described returns the stream of a trace.
func described(h trace.Header) (t stream.Key, ok bool) {
	if h.Node == nil || h.Node.Channel < FirstStream || h.Node.Channel > LastStream {
		return stream.Key{}, false
	}
	t = StreamOf(h.Node.Channel)
	return t, t.Check(h.N) == nil && StreamName(t) == h.Node.Machine
}
