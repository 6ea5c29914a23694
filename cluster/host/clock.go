package host

import (
	"sync/atomic"
	"time"

	"parley"
)

// System is the clock of the machine: the time since it was made. It goes on while the
// machine is suspended, which the monotonic clock need not: who wakes from that finds that
// time has passed, and is late with what was due meanwhile.
type System struct {
	begin  time.Time
	behind time.Duration // of boot and begin, at first
	looked atomic.Int64  // when the suspended time was last looked at
	asleep atomic.Int64  // what has been seen of it
}

// NewSystem returns a clock that shows 0.
func NewSystem() *System {
	c := &System{begin: time.Now()}
	c.behind = sinceBoot() - time.Since(c.begin)
	return c
}

// look is how often the two clocks are compared: reading the other one is a system call.
const look = int64(time.Millisecond)

// Now is the time. Right after the machine was suspended it may take a millisecond until
// it counts that.
func (c *System) Now() parley.Tick {
	awake := int64(time.Since(c.begin))
	if last := c.looked.Load(); awake-last >= look && c.looked.CompareAndSwap(last, awake) {
		c.compare()
	}
	return parley.Tick(awake + c.asleep.Load())
}

// compare sees how long the machine has been suspended. What two clocks that are not read at
// one instant differ by does not count.
func (c *System) compare() {
	before := time.Since(c.begin)
	boot := sinceBoot() - c.behind
	after := time.Since(c.begin)
	slept := int64(boot - after)
	if seen := c.asleep.Load(); after-before < time.Millisecond && slept > seen+5*look {
		c.asleep.CompareAndSwap(seen, slept)
	}
}

// Asleep is for how long the machine has been suspended since the clock was made.
func (c *System) Asleep() time.Duration { return time.Duration(c.asleep.Load()) }

// Skewed is a clock that is wrong: for tests and laboratories.
type Skewed struct {
	Clock
	Offset parley.Tick // how far it is ahead
	Drift  int64       // how much faster it runs, in parts in a million
}

// Now is the time.
func (c Skewed) Now() parley.Tick {
	t := c.Clock.Now()
	whole, part := t/1_000_000, t%1_000_000
	return t + c.Offset + whole*parley.Tick(c.Drift) + part*parley.Tick(c.Drift)/1_000_000
}
