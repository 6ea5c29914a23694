package dated

import (
	"slices"

	"parley"
	"parley/clock/convergence"
)

// View holds what a process knows of the clocks and of the date.
type View struct {
	// Clock is its logical clock, from one step to the next.
	Clock convergence.Shown
	// Date is the date of logical time 0. Dated reports whether it belongs to the clocks as they run now;
	// after the clocks begin again, it belongs to the earlier clocks until there is a new date. Once reports
	// whether there has ever been a date.
	Date        int64
	Dated, Once bool
	// Read are the processes whose clocks were read in the last resynchronization, and Ahead is how far each
	// of them was ahead.
	Read  parley.Set
	Ahead []parley.Tick
	// Rate is how much this process's hardware clock gains on the others, in parts per million. It is 0 while
	// the errors of readings may exceed a few hundred of these.
	Rate float64
}

// Look returns what a machine of this protocol knows when its hardware clock shows the given time, and false
// for machines of other protocols.
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
