package convergence

import "parley"

// clock is a logical clock: the hardware clock and a correction. An adjustment is spread evenly over a span of
// hardware time, in which the clock runs faster or slower than the hardware. It never goes back.
type clock struct {
	base   parley.Tick // the correction of the hardware clock
	amount parley.Tick // the adjustment that is being spread
	since  parley.Tick // from this hardware time on
	span   parley.Tick // over this much of it; 0: nothing is being spread
}

// at returns what the clock shows at a hardware time, rounded down to a tick. It does not go back, because an
// adjustment is smaller than its span.
func (c *clock) at(hardware parley.Tick) parley.Tick {
	t := hardware + c.base
	if c.span > 0 {
		t += share(c.amount, min(max(hardware-c.since, 0), c.span), c.span)
	}
	return t
}

// spread begins an adjustment.
func (c *clock) spread(amount, now, span parley.Tick) {
	c.amount, c.since, c.span = amount, now, span
}

// settle ends the adjustment: all of it is now in the correction.
func (c *clock) settle() {
	c.base += c.amount
	c.amount, c.since, c.span = 0, 0, 0
}

func (c *clock) state(v *parley.Vars) {
	parley.Num(v, "base", &c.base)
	parley.Num(v, "amount", &c.amount)
	parley.Num(v, "span", &c.span)
	if c.span > 0 {
		v.Time("since", &c.since)
	} else if v.Loading() {
		c.since = 0
	}
}
