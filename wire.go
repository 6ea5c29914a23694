package parley

import (
	"encoding/binary"
	"errors"
)

// MaxBody is the largest Body the codec accepts, in bytes. The largest messages of this module contain one
// level of an information tree.
const MaxBody = 256 << 20

// The errors of Decode. Every message has exactly one encoding: Decode refuses
// anything else.
var (
	ErrShort     = errors.New("parley: message ends too early")
	ErrCanonical = errors.New("parley: number not in its shortest form")
	ErrRange     = errors.New("parley: number out of range")
	ErrLocal     = errors.New("parley: kind is local to a process")
	ErrTrailing  = errors.New("parley: bytes after the message")
)

// Encode appends the wire form of m. The address within the receiver is e.Epoch and e.Path. Sender and
// receiver are not encoded, because the link knows them.
func Encode(buf []byte, e Env, m Msg) []byte { return append(EncodeHead(buf, e, m), m.Body...) }

// EncodeHead appends the wire form of m without the Body, which follows it. Hosts use EncodeHead to send the same
// Body to many receivers.
func EncodeHead(buf []byte, e Env, m Msg) []byte {
	return appendHead(binary.AppendUvarint(buf, uint64(e.Epoch)), e.Path, m)
}

// Decode reads one message that fills all of b. The Body aliases b.
func Decode(b []byte) (Env, Msg, error) {
	epoch, b, err := ReadUvarint(b, 1<<32-1)
	if err != nil {
		return Env{}, Msg{}, err
	}
	path, m, rest, err := ReadMsg(b)
	if err != nil {
		return Env{}, Msg{}, err
	}
	if len(rest) != 0 {
		return Env{}, Msg{}, ErrTrailing
	}
	return Env{Epoch: uint32(epoch), Path: path}, m, nil
}

// AppendMsg appends path and the five fields of m. Adapters use it for messages
// inside a message.
func AppendMsg(buf []byte, path Path, m Msg) []byte {
	return append(appendHead(buf, path, m), m.Body...)
}

func appendHead(buf []byte, path Path, m Msg) []byte {
	buf = binary.AppendUvarint(buf, uint64(path))
	buf = append(buf, byte(m.Kind))
	buf = binary.AppendUvarint(buf, uint64(m.Origin))
	buf = binary.AppendUvarint(buf, m.Seq)
	buf = binary.AppendUvarint(buf, m.Value)
	return binary.AppendUvarint(buf, uint64(len(m.Body)))
}

// ReadMsg reads a path and a message that AppendMsg wrote, and returns the bytes after them. An empty Body
// becomes nil.
func ReadMsg(b []byte) (path Path, m Msg, rest []byte, err error) {
	if len(b) >= 6 && (b[0]|b[1]|b[2]|b[3]|b[4]|b[5]) < 0x80 {
		// The fast path: in nearly all messages each number takes one byte.
		m = Msg{Kind: Kind(b[1]), Origin: ID(b[2]), Seq: uint64(b[3]), Value: uint64(b[4])}
		path, size := Path(b[0]), int(b[5])
		b = b[6:]
		if size > len(b) {
			return 0, Msg{}, nil, ErrShort
		}
		if size > 0 {
			m.Body = b[:size:size]
		}
		return path, m, b[size:], nil
	}
	var p, origin, size uint64
	if p, b, err = ReadUvarint(b, 1<<64-1); err != nil {
		return
	}
	if len(b) == 0 {
		return 0, Msg{}, nil, ErrShort
	}
	m.Kind, b = Kind(b[0]), b[1:]
	if m.Kind >= Local {
		return 0, Msg{}, nil, ErrLocal
	}
	if origin, b, err = ReadUvarint(b, 1<<16-1); err != nil {
		return
	}
	m.Origin = ID(origin)
	if m.Seq, b, err = ReadUvarint(b, 1<<64-1); err != nil {
		return
	}
	if m.Value, b, err = ReadUvarint(b, 1<<64-1); err != nil {
		return
	}
	if size, b, err = ReadUvarint(b, MaxBody); err != nil {
		return
	}
	if size > uint64(len(b)) {
		return 0, Msg{}, nil, ErrShort
	}
	if size > 0 {
		m.Body = b[:size:size]
	}
	return Path(p), m, b[size:], nil
}

// ReadUvarint reads a number of at most limit in its only, shortest encoding.
// Protocols use it for numbers in Body.
func ReadUvarint(b []byte, limit uint64) (uint64, []byte, error) {
	if len(b) > 0 && b[0] < 0x80 {
		if x := uint64(b[0]); x <= limit {
			return x, b[1:], nil
		}
		return 0, nil, ErrRange
	}
	x, n := binary.Uvarint(b)
	switch {
	case n == 0:
		return 0, nil, ErrShort
	case n < 0 || x > limit:
		return 0, nil, ErrRange
	case b[n-1] == 0:
		return 0, nil, ErrCanonical
	}
	return x, b[n:], nil
}
