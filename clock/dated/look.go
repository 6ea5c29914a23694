package dated

import (
	"slices"

	"parley"
	"parley/clock/convergence"
)

// View is what a process knows of the clocks and of the date.
type View struct {
	// Clock is its logical clock, from one step to the next.
	Clock convergence.Shown
	// Date is the date of the logical time 0, and Dated tells that it belongs to the clocks
	// as they run now. After the clocks began again it belongs to those before until there
	// is another one. Once tells that there has been any.
	Date        int64
	Dated, Once bool
	// Read are the processes whose clocks were read in the last resynchronization, and
	// Ahead is by how much each of them was ahead.
	Read  parley.Set
	Ahead []parley.Tick
	// Rate is by how much this process's hardware clock gains on the others, in parts in a
	// million; 0 as long as errors of reading may be more than a few hundred of them.
	Rate float64
}

// Look returns what a machine of this protocol knows when its hardware clock shows the
// given time, and false for a machine of another protocol.
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
