// Package link carries frames between the nodes of a cluster. It knows bytes and IDs, and
// no machines.
//
// There are three forms. A [Mesh] keeps one TLS 1.3 connection to every peer: what is sent
// arrives once and in order, or the connection goes down and the host is told. [Datagrams]
// sends each frame as a UDP packet, for loopback or a network that is trusted. [Calls] makes
// remote procedure calls, each with what is queued, and promises what a mesh does: for a
// network that lets HTTP/2 through and nothing else.
//
// # The path of a frame
//
// Send copies a frame into a block of the peer's queue; Flush writes the queue. Whoever
// flushes first writes, on his own goroutine; who comes meanwhile leaves what he has to
// him, so that frames share TLS records and system calls when there are many and none waits
// when there are few. No goroutine ever waits for a peer to read: beneath crypto/tls lies a
// connection that writes what the socket takes and keeps the rest (at most a block or so),
// and while there is such a rest everybody only queues, and one goroutine of the connection
// writes. Two nodes whose readers both write therefore cannot block each other.
//
// The goroutine that reads a connection calls the Handler, and does so again before the
// socket is asked for more (Burst): answers to all that one read brought leave together.
//
// # What peers may do
//
// A peer is nobody before his certificate and his hello have been checked, and untrusted
// after. All that he can make this side hold is bounded: connections without a hello, by
// number and by rate of an address; a frame of his, by Limits.Frame, and it takes memory as
// it arrives and not as it is announced; what he does not read, by class. Every refusal has
// a [Reason], is counted, and is logged at most once a minute for a peer.
//
// # Decisions
//
// The link has three forms behind link.Transport, chosen by cluster.Links and the key links. Streams
// (link.Mesh, the default) are one TLS connection a pair: frames arrive once and in order, or the
// connection goes down. Datagrams (link.Datagrams) are a UDP packet a frame, unauthenticated and lossy,
// for loopback or a network of one's own and machines that stand loss. Calls (link.Calls) are unary
// Connect calls over HTTP/2 with the same certificates, each with what was queued meanwhile, for
// networks that let nothing but HTTP/2 through. Motive: the lecture lists the three, and which promises
// a machine needs of its link shows where it runs. Cost: calls take many times a stream's round trip,
// and have a fraction of its rate: go test ./cluster/link -run '^$' -bench Form compares the three.
package link

import (
	"time"

	"parley"
)

// Class tells frames that must not wait from those that may. Within a class frames keep
// their order; between them there is none.
type Class uint8

// The classes.
const (
	Urgent Class = iota // small and written first: heartbeats, votes
	Bulk
	classes
)

// Handler takes what happens on the links. Its methods must not block. For one peer they are
// called one at a time: Up, then Frame and Burst, then Down.
type Handler interface {
	// Up says that a peer can be sent to. The incarnation is what his hello said.
	Up(id parley.ID, incarnation uint64)
	// Frame takes a frame of a peer. The bytes are valid during the call only.
	Frame(from parley.ID, channel uint32, b []byte)
	// Burst ends the frames that one read brought: now is the time to flush.
	Burst(from parley.ID)
	// Down says that the connection has ended, and why (a *Down). What was queued is lost.
	Down(id parley.ID, why error)
}

// Transport is what a host uses of each form.
type Transport interface {
	// Start begins. Handler calls may come before it returns.
	Start() error
	// Send queues a frame made of head and body, either of which may be empty; both are
	// copied. It is false if the peer is not connected or the frame does not fit, and then
	// the frame is lost and counted. It never blocks, and writes nothing: see Flush.
	Send(to parley.ID, class Class, channel uint32, head, body []byte) bool
	// Flush has what is queued for a peer written, without waiting for him.
	Flush(to parley.ID)
	// Stats counts, by peer, and what could be charged to none.
	Stats() Stats
	// Close ends all, and returns when no goroutine is left. It must not be called by the Handler.
	Close() error
}

// Stats is what a transport has counted since its start.
type Stats struct {
	Peers   []PeerStats       // of all but self, by ID
	Refused map[Reason]uint64 // of whom no peer is known
}

// PeerStats is what was counted of one peer, over all connections with him.
type PeerStats struct {
	ID          parley.ID
	Connected   bool
	Since       time.Time // of the present connection
	Incarnation uint64    // the newest that he has shown
	Version     uint16    // of the wire, on the present connection
	Connections uint64
	FramesIn    uint64
	FramesOut   uint64
	BytesIn     uint64
	BytesOut    uint64
	FramesLost  uint64 // queued when a connection ended
	Spills      uint64 // writes that the socket did not take whole
	Queued      int    // bytes: at the limit of a class the connection is given up
	RTT         RTT
	Recent      RecentRTT
	Refused     map[Reason]uint64
	Told        Reason // why the peer last refused a connection of ours, or 0
}
