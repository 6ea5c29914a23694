package convergence

import "parley"

// Now returns the time that the logical clock of a machine of this protocol shows when its hardware clock shows the
// given time. The result ok reports whether the clock counts. For other machines ok is false.
func Now(m parley.Machine, hardware parley.Tick) (logical parley.Tick, ok bool) {
	p, ok := m.(*process)
	if !ok {
		return 0, false
	}
	return p.clock.at(hardware), p.phase == in
}

// Shown is the logical clock of a process from one of its steps to the next.
type Shown struct {
	clock       clock
	in, checked bool
	due         parley.Tick
}

// At returns what the clock shows when the hardware clock shows the given time.
func (c *Shown) At(hardware parley.Tick) parley.Tick { return c.clock.at(hardware) }

// In reports whether the clock counts.
func (c *Shown) In() bool { return c.in }

// Checked reports whether the bound on clocks was measured: the clock counts, n-m clocks were near it at the last
// resynchronization, and the next resynchronization is not overdue. The messages of a start may have been late. So
// after a start, Checked also requires a resynchronization in which all clocks that were read were within delta, or
// enough resynchronizations to bring the clocks together. Only then is Plan.Ever measured, and not only assumed.
func (c *Shown) Checked(hardware parley.Tick) bool { return c.checked && c.clock.at(hardware) <= c.due }

// View holds a process's knowledge of the clocks.
type View struct {
	Shown // its own
	// Read are the processes whose clocks were read in the last resynchronization, or so far in the present
	// one. Ahead is how far each was ahead, by process.
	Read  parley.Set
	Ahead []parley.Tick
	// Adjusted is the adjustment that is being spread.
	Adjusted parley.Tick
}

// Look returns the view of a machine of this protocol, and false for other machines. Ahead aliases the
// machine's state, and changes with its next step.
func Look(m parley.Machine) (v View, ok bool) {
	p, ok := m.(*process)
	if !ok {
		return View{}, false
	}
	due := p.next + p.late() + p.Threshold
	if p.reading || p.clock.span > 0 {
		due += p.Window + p.Span + p.late() + p.Threshold
	}
	return View{
		Shown: Shown{p.clock, p.phase == in, p.phase == in && p.checked, due},
		Read:  p.read, Ahead: p.differences, Adjusted: p.clock.amount,
	}, true
}
