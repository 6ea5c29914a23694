package audit

import (
	"parley"
	"parley/lockstep"
	"parley/trace"
)

// absence is a time in which a node did not participate in the slots of a machine: it abstained, and had to
// rejoin.
type absence struct {
	who      parley.ID
	from, to parley.Tick
}

// forever is the end of an absence without a known end.
const forever parley.Tick = 1 << 62

// absences are the absences of correct nodes.
type absences []absence

// findAbsences finds the absences of correct nodes. A rejoining process sends no frames. When it sends again, its
// absence ends when the slots are over in which it may have missed something.
func findAbsences(w *trace.MergedTrace, last int, round parley.Tick) (list absences) {
	out := make(map[parley.ID]int) // position in list + 1 of a node's open absence
	var heard [parley.MaxProcesses]parley.Tick
	for i := range w.Log.Events {
		v := &w.Log.Events[i]
		if w.Liars.Has(v.At) {
			continue
		}
		k := out[v.At]
		switch {
		case v.Op == trace.Refuse && (string(v.Msg.Body) == late || string(v.Msg.Body) == few || string(v.Msg.Body) == leave):
			if heard[v.At] = v.Time; k == 0 {
				list = append(list, absence{v.At, v.Time, forever})
				out[v.At] = len(list)
			}
		case k > 0 && v.Op == trace.Send && v.Msg.Kind == lockstep.Frame && v.Time > heard[v.At]+round:
			list[k-1].to = v.Time + parley.Tick(last+3)*round
			out[v.At] = 0
		}
	}
	return list
}

// between returns the nodes that were absent at some time between from and to.
func (l absences) between(from, to parley.Tick) (set parley.Set) {
	for _, a := range l {
		if a.from <= to && from <= a.to {
			set.Add(a.who)
		}
	}
	return set
}
