package link

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
)

// The wire versions that this code supports. A new version also supports its predecessor, so that nodes can be
// upgraded one by one.
const (
	WireMin = 1
	WireMax = 2
)

// Hello is the first message of both nodes.
type Hello struct {
	Cluster     string   // the cluster's name, at most 255 bytes; must be equal
	Config      [32]byte // digest of the configuration; must be equal
	Min, Max    uint16   // wire versions; WireMin and WireMax if Max is 0. Both use the highest common one
	Incarnation uint64   // of the process: grows with each start
	Disk        Disk     // disk position of the process; not sent in version 1
}

// Disk is the state of a node's durable storage. A node without one sends zeros.
type Disk struct {
	Store    uint64 // number of its folder
	Began    uint64 // number of the last record on disk when this incarnation began
	Position uint64 // number of the last record now
}

const (
	helloFixed = 2 + 2 + 8 + 32 + 1
	helloDisk  = 8 + 8 + 8 // since version 2, after the name
	helloLimit = 1024      // bytes of a hello frame
)

// DiskSince is the first version whose hello includes the disk.
const DiskSince = 2

// encode returns the frame. Later versions may only append to its end.
func (h Hello) encode() []byte {
	size := 1 + helloFixed + len(h.Cluster)
	if h.Max >= DiskSince {
		size += helloDisk
	}
	b := appendHeader(nil, typeHello, size)
	b = binary.BigEndian.AppendUint16(b, h.Min)
	b = binary.BigEndian.AppendUint16(b, h.Max)
	b = binary.BigEndian.AppendUint64(b, h.Incarnation)
	b = append(b, h.Config[:]...)
	b = append(append(b, byte(len(h.Cluster))), h.Cluster...)
	if h.Max >= DiskSince {
		b = binary.BigEndian.AppendUint64(b, h.Disk.Store)
		b = binary.BigEndian.AppendUint64(b, h.Disk.Began)
		b = binary.BigEndian.AppendUint64(b, h.Disk.Position)
	}
	return b
}

// parseHello parses what follows the type. It skips fields of later versions.
func parseHello(b []byte, newest uint16) (h Hello, ok bool) {
	if len(b) < helloFixed || len(b) < helloFixed+int(b[helloFixed-1]) {
		return h, false
	}
	h.Min, h.Max = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	h.Incarnation = binary.BigEndian.Uint64(b[4:])
	copy(h.Config[:], b[12:])
	n := helloFixed + int(b[helloFixed-1])
	h.Cluster = string(b[helloFixed:n])
	if h.Max >= DiskSince && newest >= DiskSince {
		if len(b) < n+helloDisk {
			return h, false
		}
		h.Disk.Store = binary.BigEndian.Uint64(b[n:])
		h.Disk.Began = binary.BigEndian.Uint64(b[n+8:])
		h.Disk.Position = binary.BigEndian.Uint64(b[n+16:])
		n += helloDisk
	}
	return h, h.Min <= h.Max && (n == len(b) || h.Max > newest)
}

// agree returns the version that both support, or why they cannot communicate.
func (h *Hello) agree(peer Hello) (version uint16, why Reason) {
	version = min(h.Max, peer.Max)
	switch {
	case h.Cluster != peer.Cluster:
		return 0, OtherCluster
	case version < max(h.Min, peer.Min):
		return 0, OtherVersion // before the digest, which a later version may compute differently
	case h.Config != peer.Config:
		return 0, OtherConfig
	}
	return version, 0
}

// readHello waits for the first frame. It reads no byte after it.
func readHello(r io.Reader, newest uint16) (Hello, *Down) {
	var b [header + helloLimit]byte
	if _, err := io.ReadFull(r, b[:header]); err != nil {
		return Hello{}, greetingError(err)
	}
	n := binary.BigEndian.Uint32(b[:])
	if n == 0 {
		return Hello{}, &Down{Reason: EmptyFrame}
	}
	frame := b[header : header+min(n, helloLimit)]
	if _, err := io.ReadFull(r, frame[:1]); err != nil {
		return Hello{}, greetingError(err)
	}
	switch {
	case frame[0] == typeBye && n == 2:
		if _, err := io.ReadFull(r, frame[1:]); err != nil {
			return Hello{}, greetingError(err)
		}
		return Hello{}, told(frame[1])
	case frame[0] != typeHello:
		return Hello{}, &Down{Reason: NoHello}
	case n > helloLimit:
		return Hello{}, &Down{Reason: LongFrame}
	}
	if _, err := io.ReadFull(r, frame[1:]); err != nil {
		return Hello{}, greetingError(err)
	}
	h, ok := parseHello(frame[1:], newest)
	if !ok {
		return Hello{}, &Down{Reason: BadHello}
	}
	return h, nil
}

// greetingError returns the reason of a failed handshake or hello.
func greetingError(err error) *Down {
	var op *net.OpError
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &Down{Reason: Late}
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &Down{Reason: Truncated, Err: err}
	case errors.Is(err, io.EOF), errors.Is(err, net.ErrClosed), errors.As(err, &op) && op.Op == "read":
		return &Down{Reason: Broken, Err: err}
	}
	return &Down{Reason: Handshake, Err: err}
}
