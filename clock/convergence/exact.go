package convergence

import "parley"

// Exact computes one resynchronization of process own without rounding. The caller chooses the length of a tick. With
// the form Values it returns the new value of own's clock, and with the form Differences the increment. The result is
// whole + rest/n for n readings. The readings include the clock of process own, and are taken at the same instant. No
// two readings may differ by 2^62 or more.
func Exact(
	f Form, own parley.ID, readings []parley.Tick, read parley.Set, delta parley.Tick,
) (whole parley.Tick, rest int) {
	here := readings[own]
	if f == Differences {
		differences := make([]parley.Tick, len(readings))
		for i, x := range readings {
			differences[i] = x - here
		}
		readings, here = differences, 0
	}
	m := meanOf(own, here, readings, read, delta)
	return m.whole, m.rest
}
