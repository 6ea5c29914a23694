package rsm

import (
	"parley"
	"parley/broadcast/problem"
)

// own is this process as a client.
type own struct {
	starts problem.Incarnation // without transfer its lives
	life   uint64              // which tells its lives apart; 0: not known yet
	in     bool                // what it broadcasts is carried
	done   uint64              // own commands applied
	queue  [][]byte            // own commands; the first has number done+1 and is under way if in
}

// next broadcasts the first command that is not applied.
func (o *own) next(s *parley.Step) {
	if o.in && len(o.queue) > 0 {
		s.Broadcast(parley.Msg{Kind: apply, Value: client(s.Self, o.life), Seq: o.done + 1, Body: o.queue[0]})
	}
}

// applied tells whether a command was the one under way. Then the next one is.
func (o *own) applied(number uint64) bool {
	if number != o.done+1 || len(o.queue) == 0 {
		return false
	}
	o.done++
	o.queue = o.queue[1:]
	return true
}

// State visits every variable.
func (o *own) State(v *parley.Vars) {
	o.starts.State(v)
	parley.Num(v, "life", &o.life)
	v.Bool("in", &o.in)
	parley.Num(v, "done", &o.done)
	parley.Slice(v, "queue", &o.queue, func(_ int, b *[]byte) { v.Bytes("command", b) })
}
