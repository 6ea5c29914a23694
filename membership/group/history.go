package group

import (
	"encoding/binary"

	"parley"
)

// What was delivered lately, for those above who ask for it after the process has come back,
// or has joined. It is a part of the durable state, and goes with the snapshot.

// history is what a process delivers, one after the other.
type history struct {
	most, bytes int        // that are kept: Config.Keep and KeepBytes
	position    uint64     // deliveries so far, those of the sponsor before it joined too
	kept        []delivery // the last ones, up to the present position
	size        int        // scratch: of them; counted again when loaded
}

// delivery is a message, and of whom.
type delivery struct {
	of   parley.ID
	body []byte
}

func (x *delivery) state(v *parley.Vars) {
	v.ID("of", &x.of)
	v.Bytes("body", &x.body)
}

// mostKept is how many bytes of deliveries are kept at most: they go in one message.
const mostKept = 8 << 20

// keptSize is what a delivery counts for beside its own bytes.
const keptSize = 16

// add gives a delivery the next position, and remembers it. It lets go of the oldest ones.
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

// tell delivers what follows the present position.
func (h *history) tell(s *parley.Step, list []delivery) {
	for _, x := range list {
		h.add(x.of, x.body)
		s.Deliver(x.of, parley.Msg{Kind: parley.Carried, Origin: x.of, Seq: h.position, Body: x.body})
	}
}

// rewind goes back to before what is kept, and returns that.
func (h *history) rewind() []delivery {
	kept := h.kept
	h.position, h.kept, h.size = h.position-uint64(len(kept)), nil, 0
	return kept
}

// appendDeliveries appends how many there are, and each.
func appendDeliveries(b []byte, list []delivery) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, x := range list {
		b = parley.AppendBytes(binary.AppendUvarint(b, uint64(x.of)), x.body)
	}
	return b
}

// deliveries reads what appendDeliveries wrote.
func deliveries(r *parley.Reader, n int) (list []delivery) {
	for i := r.Count(); i > 0 && !r.Bad; i-- {
		list = append(list, delivery{r.ID(n), r.Bytes()})
	}
	return list
}

// given is what goes with a snapshot: what is kept, if anything is to be, and the state.
func (h *history) given(state []byte) []byte {
	if h.most == 0 {
		return state
	}
	return append(appendDeliveries(nil, h.kept), state...)
}

// taken reads what given wrote.
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
