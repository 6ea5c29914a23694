package audit

import (
	"parley"
	"parley/lockstep"
	"parley/trace"
)

// absence is a time in which a node took no part in the slots of a machine: it abstained, and
// had to return.
type absence struct {
	who      parley.ID
	from, to parley.Tick
}

// forever is the end of an absence of which none is known.
const forever parley.Tick = 1 << 62

// absences finds those of correct nodes. Who returns sends no frames; when it does again, it
// is back as soon as the slots are over in which it may have missed something.
func (e *evidence) absences() (list []absence) {
	last := make(map[parley.ID]int) // of a node that is out, behind its place in the list
	var heard [parley.MaxProcesses]parley.Tick
	for i := range e.w.Log.Events {
		v := &e.w.Log.Events[i]
		if e.w.Liars.Has(v.At) {
			continue
		}
		k := last[v.At]
		switch {
		case v.Op == trace.Refuse && (string(v.Msg.Body) == late || string(v.Msg.Body) == few || string(v.Msg.Body) == leave):
			if heard[v.At] = v.Time; k == 0 {
				list = append(list, absence{v.At, v.Time, forever})
				last[v.At] = len(list)
			}
		case k > 0 && v.Op == trace.Send && v.Msg.Kind == lockstep.Frame && v.Time > heard[v.At]+e.round:
			list[k-1].to = v.Time + parley.Tick(e.last+3)*e.round
			last[v.At] = 0
		}
	}
	return list
}

// absent are the nodes that were out at some time between two.
func (e *evidence) absent(from, to parley.Tick) (set parley.Set) {
	for _, a := range e.outs {
		if a.from <= to && from <= a.to {
			set.Add(a.who)
		}
	}
	return set
}
