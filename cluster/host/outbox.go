package host

import (
	"parley"
	"parley/cluster/store"
)

// outbox keeps effects that must not leave before a record is durable.
type outbox struct {
	book    *store.Book // nil: nothing is durable
	list    []held      // in order
	wanted  uint64      // the record that must be durable before the effects of this step may leave
	durable uint64      // the last durable record
	saved   []byte      // scratch for a state, which may be long
}

// held is an effect that waits until record after is durable.
type held struct {
	parley.Effect
	after uint64
	now   parley.Tick // of its step
}

// mostSaved is the size in bytes up to which the buffer for a state is reused.
const mostSaved = 12 << 20

// append appends the records of a step to the store, and then, if the state must replace them, the state
// after the step.
func (o *outbox) append(effects []parley.Effect, m parley.Machine, now parley.Tick) {
	compact := false
	for i := range effects {
		switch e := &effects[i]; e.Op {
		case parley.OpAppend:
			o.wanted = o.book.Append(parley.Record{Path: e.Path, Body: e.Msg.Body})
		case parley.OpCompact:
			compact = true
		}
	}
	if compact {
		o.saved = parley.SaveDurable(m, now, o.saved[:0])
		if o.wanted = o.book.Replace(o.saved); cap(o.saved) > mostSaved {
			o.saved = nil
		}
	}
}

// empty returns whether nothing waits for the disk, or has to.
func (o *outbox) empty() bool { return o.durable >= o.wanted && len(o.list) == 0 }

// hold keeps the other effects of a step.
func (o *outbox) hold(effects []parley.Effect, now parley.Tick) {
	for i := range effects {
		if op := effects[i].Op; op != parley.OpAppend && op != parley.OpCompact {
			o.list = append(o.list, held{effects[i], o.wanted, now})
		}
	}
}

// reached returns the effects that may leave once the disk has reached upto.
func (o *outbox) reached(upto uint64) []held {
	o.durable = max(o.durable, upto)
	n := 0
	for n < len(o.list) && o.list[n].after <= o.durable {
		n++
	}
	return o.list[:n]
}
