package rsm

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"parley"
)

// offer is a state that a replica keeps for a joiner.
type offer struct {
	to     parley.ID
	number uint64
	state  []byte
	since  parley.Tick // when it was last requested
}

// sum returns the message with the hash of the state.
func (o *offer) sum() parley.Msg {
	hash := sha256.Sum256(o.state)
	return parley.Msg{Kind: sum, Seq: o.number, Body: append(binary.AppendUvarint(nil, uint64(len(o.state))), hash[:]...)}
}

func (o *offer) visit(v *parley.Vars) {
	v.ID("to", &o.to)
	parley.Num(v, "number", &o.number)
	v.Bytes("state", &o.state)
	v.Time("since", &o.since)
}

// offers are the offers of one replica.
type offers []offer

func (all *offers) drop(to parley.ID) {
	*all = slices.DeleteFunc(*all, func(o offer) bool { return o.to == to })
}

// expire drops the offers that were not requested since a time.
func (all *offers) expire(since parley.Tick) {
	*all = slices.DeleteFunc(*all, func(o offer) bool { return o.since < since })
}

// give sends the next pieces, or drops the state when the joiner is done.
func (all *offers) give(s *parley.Step, to parley.ID, m parley.Msg, piece int) {
	i := slices.IndexFunc(*all, func(o offer) bool { return o.to == to && o.number == m.Seq })
	if i < 0 || m.Kind == want && m.Value >= uint64(len((*all)[i].state)) {
		s.Refuse(to, "asks for a state that is not kept")
		return
	}
	if m.Kind == done {
		all.drop(to)
		return
	}
	o := &(*all)[i]
	o.since = s.Now
	for at, k := int(m.Value), 0; at < len(o.state) && k < burst; k++ {
		end := min(at+piece, len(o.state))
		s.Send(to, parley.Msg{Kind: part, Seq: o.number, Value: uint64(at), Body: o.state[at:end:end]})
		at = end
	}
}

// lacks answers a mark: this replica has no state to give.
func lacks(s *parley.Step, to parley.ID, m parley.Msg) {
	if to != s.Self {
		s.Send(to, parley.Msg{Kind: sum, Seq: m.Seq})
	}
}
