package group

import (
	"encoding/binary"

	"parley"
)

// The last deliveries, for a layer above that requests them after the process has restarted or joined. They
// are part of the durable state, and of the snapshot.

// history numbers the deliveries of a process, and keeps the last ones.
type history struct {
	maxCount, maxBytes int        // limits of kept: Config.Keep and KeepBytes
	position           uint64     // deliveries so far, including those of the sponsor before this process joined
	kept               []delivery // the last deliveries, up to position
	size               int        // scratch: of kept in bytes; recomputed on loading
}

// delivery is a delivered payload and its sender.
type delivery struct {
	of   parley.ID
	body []byte
}

func (x *delivery) state(v *parley.Vars) {
	v.ID("of", &x.of)
	v.Bytes("body", &x.body)
}

// maxKeptBytes bounds the bytes of kept deliveries: they go in one message.
const maxKeptBytes = 8 << 20

// keptOverhead is what a delivery costs in addition to its own bytes.
const keptOverhead = 16

// add gives a delivery the next position and keeps it. It drops the oldest ones beyond the limits.
func (h *history) add(of parley.ID, body []byte) {
	if h.position++; h.maxCount == 0 {
		return
	}
	h.kept, h.size = append(h.kept, delivery{of, body}), h.size+keptOverhead+len(body)
	for len(h.kept) > 1 && (len(h.kept) > h.maxCount || h.size > h.maxBytes) {
		h.size -= keptOverhead + len(h.kept[0].body)
		h.kept[0] = delivery{}
		h.kept = h.kept[1:]
	}
}

// tell delivers the list after the present position.
func (h *history) tell(s *parley.Step, list []delivery) {
	for _, x := range list {
		h.add(x.of, x.body)
		s.Deliver(x.of, parley.Msg{Kind: parley.Carried, Origin: x.of, Seq: h.position, Body: x.body})
	}
}

// rewind moves the position back before the kept deliveries, and returns them.
func (h *history) rewind() []delivery {
	kept := h.kept
	h.position, h.kept, h.size = h.position-uint64(len(kept)), nil, 0
	return kept
}

// appendDeliveries encodes the number of deliveries, and each of them.
func appendDeliveries(b []byte, list []delivery) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, x := range list {
		b = parley.AppendBytes(binary.AppendUvarint(b, uint64(x.of)), x.body)
	}
	return b
}

// deliveries decodes what appendDeliveries encoded.
func deliveries(r *parley.Reader, n int) (list []delivery) {
	for i := r.Count(); i > 0 && !r.Bad; i-- {
		list = append(list, delivery{r.ID(n), r.Bytes()})
	}
	return list
}

// encodeSnapshot encodes the body of a snapshot: the kept deliveries, if the group keeps any, and the state.
func (h *history) encodeSnapshot(state []byte) []byte {
	if h.maxCount == 0 {
		return state
	}
	return append(appendDeliveries(nil, h.kept), state...)
}

// decodeSnapshot decodes what encodeSnapshot encoded.
func (h *history) decodeSnapshot(b []byte, n int) (kept []delivery, state []byte, ok bool) {
	if h.maxCount == 0 {
		return nil, b, true
	}
	r := parley.Reader{Rest: b}
	kept = deliveries(&r, n)
	return kept, r.Rest, !r.Bad
}

func (h *history) keptState(v *parley.Vars) {
	if h.maxCount == 0 {
		return
	}
	h.size = 0
	parley.Slice(v, "kept", &h.kept, func(_ int, x *delivery) {
		x.state(v)
		h.size += keptOverhead + len(x.body)
	})
}
