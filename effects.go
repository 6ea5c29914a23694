package parley

import "slices"

// DurableFirst reorders the effects of a step into the order in which every host carries them out: first Append, then
// Compact, and then all other effects. Compact comes after Append, because Compact saves the state after the step.
// Effects of the same kind keep their order. An effect may leave the process only after all appended records are
// durable.
func DurableFirst(effects []Effect) {
	for i := range effects {
		if effects[i].Op.rank() < lastRank {
			slices.SortStableFunc(effects, func(a, b Effect) int { return a.Op.rank() - b.Op.rank() })
			return
		}
	}
}

// lastRank is the rank of the effects that do not concern the log.
const lastRank = 2

func (op Op) rank() int {
	switch op {
	case OpAppend:
		return 0
	case OpCompact:
		return 1
	}
	return lastRank
}

// Singly replaces each send to all n processes by one send to each receiver, and returns the resulting effects. A
// process may crash between two of these sends.
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
