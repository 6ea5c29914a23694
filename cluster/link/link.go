// Package link carries frames between the nodes of a cluster. A frame is an encoded message. This package knows the
// IDs of nodes, but no machines.
//
// There are three forms of links. A [Mesh] keeps one TLS 1.3 connection to every peer: frames arrive once and in
// order, or the connection breaks and the host is notified. [Datagrams] sends each frame as a UDP packet, for
// loopback or a trusted network. [Calls] makes remote procedure calls. Each call carries all queued frames. Calls
// keep the same promises as a mesh, and are for networks that let only HTTP/2 through.
//
// # The path of a frame
//
// Send copies a frame into the queue for the peer, and Flush writes the queue. One goroutine writes at a time. If
// other goroutines call Flush meanwhile, this goroutine also writes their frames. So under load many frames share
// TLS records and system calls, and without load a frame does not wait.
//
// A goroutine that calls Send or Flush never waits for a peer to read. Below crypto/tls is a connection of this
// package. It writes as many bytes as the socket accepts at once, and stores the remaining bytes (at most about one
// block). One separate goroutine of the connection then writes the stored bytes. Until this goroutine has finished,
// all other goroutines only queue frames. If they waited instead, two nodes could block each other: in each node, the
// goroutine that reads would wait until the other node reads.
//
// The goroutine that reads a connection calls Handler.Frame for each frame. It calls Handler.Burst before it reads
// from the socket again. So the answers to all frames of one read are sent together.
//
// # What peers may do
//
// A peer is unauthenticated until its certificate and its hello (the first message on a connection) have been
// checked. After that it is authenticated, but not trusted, because it may be faulty. All memory that a peer can
// occupy is bounded. The number and the rate of connections without a hello are limited for each address.
// Limits.Frame limits the length of a frame, and the node allocates memory for a frame only as its bytes arrive.
// Frames that wait until a peer reads them have two limits: one for urgent frames, and one for all other frames
// ([Class]). Every refusal has a [Reason]. The node counts refusals, and logs them at most once a minute for each
// peer.
//
// # Decisions
//
// There are three forms of links with one interface, [Transport]. The field Links of cluster.Config, or the key links
// of the configuration file, chooses the form. Motive: the lecture (docs/explanation/sources.md) lists the three
// forms. If you run a machine on each form, you see which promises of links the machine needs. Cost: datagrams are
// not authenticated and may be lost, so they are only for machines that tolerate loss. A call takes many times as
// long as a round trip on a TLS connection, so calls carry only a fraction of the frames in the same time. To compare
// the three forms, run: go test ./cluster/link -run '^$' -bench Form.
package link

import (
	"time"

	"parley"
)

// Class separates urgent frames from other frames. Frames of the same class keep their order. There is no order
// between classes.
type Class uint8

// The classes.
const (
	Urgent Class = iota // small and written first: heartbeats, votes
	Bulk
	classes
)

// Handler handles events of the links. Its methods must not block. For one peer they are called one at a time:
// Up, then Frame and Burst, then Down.
type Handler interface {
	// Up notifies that a peer is connected, with the incarnation of its hello.
	Up(id parley.ID, incarnation uint64)
	// Frame handles a frame of a peer. The bytes are valid only during the call.
	Frame(from parley.ID, channel uint32, b []byte)
	// Burst follows the frames of one read: the handler should flush its answers now.
	Burst(from parley.ID)
	// Down notifies that the connection has ended, with the reason (a *Down). Queued frames are lost.
	Down(id parley.ID, why error)
}

// Transport is the interface that all forms provide to a host.
type Transport interface {
	// Start starts the transport. It may call the Handler before it returns.
	Start() error
	// Send queues a frame that consists of head and body. Both are copied, and each may be empty. Send returns false
	// if the peer is not connected or the frame does not fit. Then the frame is lost and counted. Send never blocks,
	// and does not write: see Flush.
	Send(to parley.ID, class Class, channel uint32, head, body []byte) bool
	// Flush starts writing a peer's queue, without waiting for the peer.
	Flush(to parley.ID)
	// Stats returns the counters, by peer, and of connections without a known peer.
	Stats() Stats
	// Close ends all connections, and returns when no goroutine is left. The Handler must not call it.
	Close() error
}

// Stats are the counters of a transport since its start.
type Stats struct {
	Peers   []PeerStats       // all except self, by ID
	Refused map[Reason]uint64 // of connections without a known peer
}

// PeerStats are the counters of one peer, over all its connections.
type PeerStats struct {
	ID          parley.ID
	Connected   bool
	Since       time.Time // of the current connection
	Incarnation uint64    // the latest that was admitted
	Version     uint16    // wire version of the current connection
	Connections uint64
	FramesIn    uint64
	FramesOut   uint64
	BytesIn     uint64
	BytesOut    uint64
	FramesLost  uint64 // queued when a connection ended
	Spills      uint64 // writes that the socket did not accept as a whole
	Queued      int    // bytes; above the limit of a class the connection is closed
	RTT         RTT
	Recent      RecentRTT
	Refused     map[Reason]uint64
	Told        Reason // why the peer last refused our connection, or 0
}
