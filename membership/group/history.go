package group

import (
	"encoding/binary"

	"parley"
)

// The last deliveries, for a layer above that requests them after the process has restarted or joined. They
// are part of the durable state, and of the snapshot.

// history numbers the deliveries of a process, and keeps the last ones.
type history struct {
	most, bytes int        // limits of kept: Config.Keep and KeepBytes
	position    uint64     // deliveries so far, including those of the sponsor before this process joined
	kept        []delivery // the last deliveries, up to position
	size        int        // scratch: of kept in bytes; recomputed on loading
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

// mostKept bounds the bytes of kept deliveries: they go in one message.
const mostKept = 8 << 20

// keptSize is what a delivery costs in addition to its own bytes.
const keptSize = 16

// add gives a delivery the next position and keeps it. It drops the oldest ones beyond the limits.
func (h *history) add(of parley.ID, body []byte) {
	if h.position++; h.most == 0 {
		return
	}
	h.kept, h.size = append(h.kept, delivery{of, body}), h.size+keptSize+len(body)
	for len(h.kept) > 1 && (len(h.kept) > h.most || h.size > h.bytes) {
		h.size -= keptSize + len(h.kept[0].body)
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

// given encodes the body of a snapshot: the kept deliveries, if the group keeps any, and the state.
func (h *history) given(state []byte) []byte {
	if h.most == 0 {
		return state
	}
	return append(appendDeliveries(nil, h.kept), state...)
}

// taken decodes what given encoded.
func (h *history) taken(b []byte, n int) (kept []delivery, state []byte, ok bool) {
	if h.most == 0 {
		return nil, b, true
	}
	r := parley.Reader{Rest: b}
	kept = deliveries(&r, n)
	return kept, r.Rest, !r.Bad
}

func (h *history) keptState(v *parley.Vars) {
	if h.most == 0 {
		return
	}
	h.size = 0
	parley.Slice(v, "kept", &h.kept, func(_ int, x *delivery) {
		x.state(v)
		h.size += keptSize + len(x.body)
	})
}
