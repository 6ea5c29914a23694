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
	awake  func() time.Duration // stands still while the machine is suspended
	boot   func() time.Duration // does not
	behind atomic.Int64         // how far boot was ahead of awake at first: at most so much
	looked atomic.Int64         // when they were last compared
	asleep atomic.Int64         // how much farther it has been seen to be: at least so much
}

// NewSystem returns a clock that shows 0.
func NewSystem() *System {
	begin := time.Now()
	return newSystem(func() time.Duration { return time.Since(begin) }, sinceBoot)
}

func newSystem(awake, boot func() time.Duration) *System {
	c := &System{awake: awake, boot: boot}
	before := awake()
	c.behind.Store(int64(boot() - before))
	return c
}

// look is how often the two clocks are compared: reading the other one is a system call.
const look = int64(time.Millisecond)

// Now is the time. Right after the machine was suspended it may take a millisecond until
// it counts that.
func (c *System) Now() parley.Tick {
	awake := int64(c.awake())
	if last := c.looked.Load(); awake-last >= look && c.looked.CompareAndSwap(last, awake) {
		c.compare()
	}
	return parley.Tick(awake + c.asleep.Load())
}

// compare sees how long the machine has been suspended. No two clocks can be read at one
// instant, and any time may pass between two readings of a busy machine. Read between two
// readings of awake, boot is ahead by no less than it shows above the later one and by no more
// than it shows above the earlier one: the first counts for what has been slept and the second
// for where it began, so that nothing but a suspension can be taken for one.
func (c *System) compare() {
	before := c.awake()
	boot := c.boot()
	after := c.awake()
	least, most := int64(boot-after), int64(boot-before)
	for {
		behind := c.behind.Load()
		if most < behind {
			if c.behind.CompareAndSwap(behind, most) {
				continue
			}
		} else if seen := c.asleep.Load(); least-behind <= seen+5*look || c.asleep.CompareAndSwap(seen, least-behind) {
			return
		}
	}
}

// Asleep is for how long the machine has been suspended since the clock was made.
func (c *System) Asleep() time.Duration { return time.Duration(c.asleep.Load()) }

// Elapsed is the time since it was made, by package time and nothing else: in a bubble of
// testing/synctest that is the bubble's. Unlike System it need not count what the machine is
// suspended for.
type Elapsed struct{ begin time.Time }

// NewElapsed returns a clock that shows 0.
func NewElapsed() Elapsed { return Elapsed{time.Now()} }

// Now is the time.
func (c Elapsed) Now() parley.Tick { return parley.Tick(time.Since(c.begin)) }

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
