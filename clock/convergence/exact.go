package convergence

import "parley"

// Exact is one resynchronization of process own without rounding, in ticks as small as the caller likes: the new
// value of its clock in the form of Values, the increment in that of Differences. It is whole + rest/n for n readings.
// These have own's clock among them, and all are read at one instant. No two may differ by 2^62 or more.
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
