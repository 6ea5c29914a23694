package rsm

import (
	"parley"
	"parley/broadcast/problem"
)

// ownClient is this process as a client.
type ownClient struct {
	starts problem.Incarnation // its incarnations, without Transfer
	life   uint64              // distinguishes its incarnations; 0: not known yet
	in     bool                // the group carries its broadcasts
	done   uint64              // number of own commands applied
	queue  [][]byte            // own commands; the first has number done+1 and is in flight if in is set
}

// next broadcasts the first own command that is not applied.
func (o *ownClient) next(s *parley.Step) {
	if o.in && len(o.queue) > 0 {
		s.Broadcast(parley.Msg{Kind: apply, Value: client(s.Self, o.life), Seq: o.done + 1, Body: o.queue[0]})
	}
}

// applied removes the own command with the given number, and returns whether it was in flight.
func (o *ownClient) applied(number uint64) bool {
	if number != o.done+1 || len(o.queue) == 0 {
		return false
	}
	o.done++
	o.queue = o.queue[1:]
	return true
}

func (o *ownClient) State(v *parley.Vars) {
	o.starts.State(v)
	parley.Num(v, "life", &o.life)
	v.Bool("in", &o.in)
	parley.Num(v, "done", &o.done)
	parley.Slice(v, "queue", &o.queue, func(_ int, b *[]byte) { v.Bytes("command", b) })
}
