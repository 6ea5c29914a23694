package link

import (
	"fmt"
	"sync/atomic"
)

// Reason is why a connection or a frame was refused or lost. Reasons are sent in bye frames, so their numbers are
// fixed. New reasons are appended.
type Reason uint8

// The reasons.
const (
	Closed       Reason = iota + 1 // as intended
	Broken                         // the connection broke, or the peer's process ended
	Unreachable                    // no answer at the peer's address
	NotConnected                   // a frame was sent to a peer that is not connected
	Overflow                       // the peer does not read as fast as we send: a queue was full
	Stuck                          // the peer did not read at all
	Silent                         // no frames from the peer
	SlowFrame                      // a frame was begun and not finished
	EmptyFrame                     // a frame of length 0
	LongFrame                      // a frame over the limit
	Truncated                      // the connection ended within a frame
	UnknownType                    // a frame of no known type
	Malformed                      // a frame that cannot be read
	NoHello                        // another frame before hello
	SecondHello                    // hello after hello
	BadHello                       // a hello that cannot be parsed
	OtherCluster                   // a hello with another cluster's name
	OtherConfig                    // a hello with another configuration's digest
	OtherVersion                   // a hello without a common wire version
	OtherPeer                      // not the dialed node, no peer of ours, or one that must not dial us
	OldLife                        // an incarnation before the last known one
	Duplicate                      // the peer already has a live connection
	Replaced                       // the peer connected as a newer incarnation
	PingFlood                      // too many pings
	BadPong                        // a pong without a ping
	Handshake                      // TLS failed: a bad certificate, or no TLS at all
	Late                           // no hello in time
	Crowd                          // too many connections without a hello
	Rate                           // too many connections from one address
	AcceptFailed                   // the listener failed, for example because there are no descriptors left
	Untrusted                      // the peer's certificate is no longer trusted
	ToldOff                        // the peer refused us: its bye has the reason
	OtherAddress                   // a datagram from an address that is not its sender's
	Unsendable                     // a datagram that the system did not accept
	Oversize                       // a frame of our own over the limit
	Behind                         // the peer's folder lacks records that it had: it is an old copy
	FutureLife                     // an incarnation that no process can have yet
	reasons
)

var reasonText = [reasons]string{
	Closed: "closed", Broken: "connection broken", Unreachable: "unreachable", NotConnected: "not connected",
	Overflow: "queue overflow", Stuck: "peer does not read", Silent: "peer is silent", SlowFrame: "frame too slow",
	EmptyFrame: "empty frame", LongFrame: "frame too long", Truncated: "frame cut off",
	UnknownType: "unknown frame type", Malformed: "malformed frame", NoHello: "no hello", SecondHello: "second hello",
	BadHello: "malformed hello", OtherCluster: "other cluster", OtherConfig: "other configuration",
	OtherVersion: "other wire version", OtherPeer: "other peer", OldLife: "old incarnation",
	Duplicate: "duplicate connection", Replaced: "replaced by a newer incarnation", PingFlood: "too many pings",
	BadPong: "pong without ping", Handshake: "handshake failed", Late: "handshake too late",
	Crowd: "too many handshakes", Rate: "too many connections from one address", AcceptFailed: "accept failed",
	Untrusted: "certificate not trusted any more", ToldOff: "refused by the peer", OtherAddress: "other address",
	Unsendable: "datagram not sent", Oversize: "frame of our own too long",
	Behind: "its folder is an old copy", FutureLife: "incarnation from the future",
}

func (r Reason) String() string {
	if r > 0 && r < reasons {
		return reasonText[r]
	}
	return fmt.Sprintf("reason %d", uint8(r))
}

// Down is why a connection ended or was not made.
type Down struct {
	Reason Reason
	Told   Reason // with ToldOff: the peer's reason; 0 if it is unknown
	Err    error  // the system's error, or nil
}

func (d *Down) Error() string {
	s := "link: " + d.Reason.String()
	if d.Told != 0 {
		s += ": " + d.Told.String()
	}
	if d.Err != nil {
		s += ": " + d.Err.Error()
	}
	return s
}

// told parses a bye. All unknown reasons, of a later version or a faulty peer, count as one: otherwise there
// would be as many notes as byte values.
func told(b byte) *Down {
	if b >= byte(reasons) {
		b = 0
	}
	return &Down{Reason: ToldOff, Told: Reason(b)}
}

// Unwrap returns the system's error.
func (d *Down) Unwrap() error { return d.Err }

// counts has a counter for every reason.
type counts [reasons]atomic.Uint64

func (c *counts) add(why Reason) { c[why].Add(1) }

// seen returns the counters that are not 0.
func (c *counts) seen() map[Reason]uint64 {
	out := make(map[Reason]uint64)
	for i := range c {
		if n := c[i].Load(); n > 0 {
			out[Reason(i)] = n
		}
	}
	return out
}
