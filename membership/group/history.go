package group

import (
	"encoding/binary"

	"parley"
)

// What was delivered lately, for those above who ask for it after the process has come back,
// or has joined. It is a part of the durable state, and goes with the snapshot.

// mostKept is how many bytes of deliveries are kept at most: they go in one message.
const mostKept = 8 << 20

// keptSize is what a delivery counts for beside its own bytes.
const keptSize = 16

// keep remembers the delivery at the present position, and lets go of the oldest ones.
func (g *machine) keep(of parley.ID, body []byte) {
	if g.c.Keep == 0 {
		return
	}
	g.kept, g.size = append(g.kept, delivery{of, body}), g.size+keptSize+len(body)
	for len(g.kept) > 1 && (len(g.kept) > g.c.Keep || g.size > g.c.KeepBytes) {
		g.size -= keptSize + len(g.kept[0].body)
		g.kept[0] = delivery{}
		g.kept = g.kept[1:]
	}
}

// tell delivers what follows the present position.
func (g *machine) tell(s *parley.Step, list []delivery) {
	for _, x := range list {
		g.position++
		g.keep(x.of, x.body)
		s.Deliver(x.of, parley.Msg{Kind: parley.Carried, Origin: x.of, Seq: g.position, Body: x.body})
	}
}

// appendDeliveries appends how many there are, and each.
func appendDeliveries(b []byte, list []delivery) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, x := range list {
		b = appendBytes(binary.AppendUvarint(b, uint64(x.of)), x.body)
	}
	return b
}

// deliveries reads what appendDeliveries wrote.
func (r *reader) deliveries(n int) (list []delivery) {
	for range r.number(uint64(len(r.b))) {
		if r.bad {
			return nil
		}
		list = append(list, delivery{parley.ID(r.number(uint64(n - 1))), r.bytes()})
	}
	return list
}

// given is what goes with a snapshot: what is kept, if anything is to be, and the state.
func (g *machine) given(state []byte) []byte {
	if g.c.Keep == 0 {
		return state
	}
	return append(appendDeliveries(nil, g.kept), state...)
}

// taken reads what given wrote.
func (g *machine) taken(b []byte) (kept []delivery, state []byte, ok bool) {
	if g.c.Keep == 0 {
		return nil, b, true
	}
	r := reader{b: b}
	kept = r.deliveries(g.c.N)
	return kept, r.b, !r.bad
}

func (g *machine) keptState(v *parley.Vars) {
	if g.c.Keep == 0 {
		return
	}
	g.size = 0
	parley.Slice(v, "kept", &g.kept, func(_ int, x *delivery) {
		v.ID("of", &x.of)
		v.Bytes("body", &x.body)
		g.size += keptSize + len(x.body)
	})
}
