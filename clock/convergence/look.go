package convergence

import "parley"

// Now returns what the logical clock of a machine of this protocol shows when its
// hardware clock shows the given time, and whether the process is in.
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

// In tells whether the process counts.
func (c *Shown) In() bool { return c.in }

// Checked tells that the process counts, that n-m clocks were near its own at the last
// resynchronization, and that the next one is not overdue; and where there is a start, of which a
// message may have been late, that all clocks which were read in one of them were within delta, or
// that so many of them have been since the start as pull clocks together. Only then is Plan.Ever
// what was found, and not what was assumed.
func (c *Shown) Checked(hardware parley.Tick) bool { return c.checked && c.clock.at(hardware) <= c.due }

// View is what a process knows of the clocks.
type View struct {
	Shown // its own
	// Read are the processes whose clocks were read last, and Ahead is by how much each
	// was ahead then. While readings come in they are those that have come.
	Read  parley.Set
	Ahead []parley.Tick
	// Adjusted is by how much the clock is being adjusted.
	Adjusted parley.Tick
}

// Look returns what a machine of this protocol knows. Ahead is the machine's own and
// changes with its next step.
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
