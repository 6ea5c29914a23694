package parley

import "slices"

// DurableFirst puts the effects of a step into the order in which every host carries them
// out: what the step appends, then Compact, because it saves the state after the step, and
// then the rest. Effects of one of these three kinds keep their order. Nothing may leave a
// process before what it appended is durable.
func DurableFirst(effects []Effect) {
	for i := range effects {
		if effects[i].Op.rank() < last {
			slices.SortStableFunc(effects, func(a, b Effect) int { return a.Op.rank() - b.Op.rank() })
			return
		}
	}
}

// last is the rank of all that is not for the log.
const last = 2

func (op Op) rank() int {
	switch op {
	case OpAppend:
		return 0
	case OpCompact:
		return 1
	}
	return last
}

// Singly returns effects with one send to each receiver in place of a send to all n, because
// a process may crash in the middle of it.
func Singly(effects []Effect, n int) []Effect {
	var out []Effect
	for _, e := range effects {
		if e.Op != OpSend || e.To != All {
			out = append(out, e)
			continue
		}
		for e.To = range ID(n) {
			if e.To != e.From {
				out = append(out, e)
			}
		}
	}
	return out
}
