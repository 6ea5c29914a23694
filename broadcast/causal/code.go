package causal

import (
	"encoding/binary"
	"errors"
	"math"

	"parley"
	"parley/broadcast/problem"
)

// item is the kind of a message inside a bundle. Origin: its sender. Value: the sender's incarnation. Seq:
// the number. Body: the payload.
const item parley.Kind = 1

// Errors of malformed bodies.
var (
	errItem  = errors.New("bundle with something that is no message")
	errEmpty = errors.New("bundle of nothing")
	errOrder = errors.New("vector out of order")
)

// Pack returns the body of a bundle.
func Pack(all []Message) []byte {
	var b []byte
	for _, m := range all {
		b = parley.AppendMsg(b, 0, parley.Msg{Kind: item, Origin: m.Sender, Value: m.Life, Seq: m.Seq, Body: m.Body})
	}
	return b
}

// Unpack returns the messages in the body of a bundle, among n processes. The sender's own message is the
// last one.
func Unpack(b []byte, n int) ([]Message, error) {
	var all []Message
	for len(b) > 0 {
		path, m, rest, err := parley.ReadMsg(b)
		switch {
		case err != nil:
			return nil, err
		case path != 0 || m.Kind != item || int(m.Origin) >= n || m.Value == 0 || m.Seq == 0:
			return nil, errItem
		}
		all, b = append(all, Message{Sender: m.Origin, Life: m.Value, Seq: m.Seq, Body: m.Body}), rest
	}
	if len(all) == 0 {
		return nil, errEmpty
	}
	return all, nil
}

// AppendStamp appends the body of a stamped message: the number of places of the vector, the places, and the
// payload. Places must be in the order of senders and incarnations.
func AppendStamp(b []byte, vector []Count, payload []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(vector)))
	for _, c := range vector {
		b = binary.AppendUvarint(b, uint64(c.Sender))
		b = binary.AppendUvarint(b, c.Life)
		b = binary.AppendUvarint(b, c.Seq)
	}
	return append(b, payload...)
}

// ReadStamp decodes what AppendStamp encoded, among n processes.
func ReadStamp(b []byte, n int) (vector []Count, payload []byte, err error) {
	places, b, err := parley.ReadUvarint(b, uint64(n)*problem.MaxLives)
	if err != nil {
		return nil, nil, err
	}
	for i := range places {
		var c [3]uint64
		for k, limit := range []uint64{uint64(n) - 1, math.MaxUint64, math.MaxUint64} {
			if c[k], b, err = parley.ReadUvarint(b, limit); err != nil {
				return nil, nil, err
			}
		}
		next := Count{parley.ID(c[0]), c[1], c[2]}
		if next.Life == 0 || next.Seq == 0 || i > 0 && !before(vector[i-1], next) {
			return nil, nil, errOrder
		}
		vector = append(vector, next)
	}
	return vector, b, nil
}

func before(a, b Count) bool { return a.Sender < b.Sender || a.Sender == b.Sender && a.Life < b.Life }
