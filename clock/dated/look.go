package dated

import (
	"slices"

	"parley"
	"parley/clock/convergence"
)

// View holds a process's knowledge of the clocks and of the date.
type View struct {
	// Clock is its logical clock, from one step to the next.
	Clock convergence.Shown
	// Date is the date of logical time 0. Dated reports whether the date belongs to the clocks as they run now. After
	// the clocks have begun again, the date belongs to the earlier clocks until there is a new date. Once reports
	// whether there has ever been a date.
	Date        int64
	Dated, Once bool
	// Read are the processes whose clocks were read in the last resynchronization, and Ahead is how far each
	// of them was ahead.
	Read  parley.Set
	Ahead []parley.Tick
	// Rate is how much faster this process's hardware clock runs than the others, in parts per million. It is
	// 0 while the error of Rate may exceed a few hundred parts per million.
	Rate float64
}

// Look returns the view of a machine of this protocol when its hardware clock shows the given time. For
// machines of other protocols it returns false.
func Look(m parley.Machine, hardware parley.Tick) (View, bool) {
	d, ok := m.(*machine)
	if !ok {
		return View{}, false
	}
	clock, _ := convergence.Look(d.clock)
	return View{
		Clock: clock.Shown, Date: d.date, Dated: d.dated, Once: d.once,
		Read: d.read, Ahead: slices.Clone(d.skew), Rate: d.rate(hardware),
	}, true
}
