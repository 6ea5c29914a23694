package host

import (
	"parley"
	"parley/cluster/store"
)

// outbox keeps what may not leave before the disk has come so far.
type outbox struct {
	book    *store.Book // nil: nothing is durable
	list    []held      // in order
	wanted  uint64      // the record that must be durable before the effects of this step may leave
	durable uint64      // what is
	saved   []byte      // scratch: of a state, which may be long
}

// held is an effect that waits until the disk has come so far.
type held struct {
	parley.Effect
	after uint64
	now   parley.Tick // of the step that asked for it
}

// mostSaved is the largest buffer for a state that is kept for the next one.
const mostSaved = 12 << 20

// append hands what a step appended to the store: the records, and then the state
// after the step if that is to replace them.
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

// empty tells whether nothing waits for the disk, and nothing has to.
func (o *outbox) empty() bool { return o.durable >= o.wanted && len(o.list) == 0 }

// hold keeps what a step asked for beside that.
func (o *outbox) hold(effects []parley.Effect, now parley.Tick) {
	for i := range effects {
		if op := effects[i].Op; op != parley.OpAppend && op != parley.OpCompact {
			o.list = append(o.list, held{effects[i], o.wanted, now})
		}
	}
}

// reached returns what may leave when the disk has come so far.
func (o *outbox) reached(upto uint64) []held {
	o.durable = max(o.durable, upto)
	n := 0
	for n < len(o.list) && o.list[n].after <= o.durable {
		n++
	}
	return o.list[:n]
}
