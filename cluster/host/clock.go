package host

import (
	"sync/atomic"
	"time"

	"parley"
)

// System is the clock of the computer. It shows the time since it was made, including suspensions of the computer.
// (An ordinary monotonic clock may omit them.) So after a suspension, a process knows that it is late for everything
// that was due during the suspension.
type System struct {
	awake  func() time.Duration // stops during suspensions
	boot   func() time.Duration // includes suspensions
	behind atomic.Int64         // upper bound of boot - awake at the start
	looked atomic.Int64         // when they were last compared
	asleep atomic.Int64         // lower bound of the growth of boot - awake since then
}

// NewSystem returns a System clock that shows 0.
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

// recheck is the interval of comparisons of the two clocks: reading boot is a system call.
const recheck = int64(time.Millisecond)

// Now returns the time. After a suspension, it may take a millisecond until the time includes the suspension.
func (c *System) Now() parley.Tick {
	awake := int64(c.awake())
	if last := c.looked.Load(); awake-last >= recheck && c.looked.CompareAndSwap(last, awake) {
		c.compare()
	}
	return parley.Tick(awake + c.asleep.Load())
}

// compare measures how long the computer has been suspended. No two clocks can be read at the same instant,
// and any time may pass between two readings on a busy computer. boot is read between two readings of
// awake, so the true difference is at least boot minus the later reading and at most boot minus the earlier
// one: the first bounds the suspension so far and the second the difference at the start, so that only a
// suspension counts as one.
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
		} else if seen := c.asleep.Load(); least-behind <= seen+5*recheck || c.asleep.CompareAndSwap(seen, least-behind) {
			return
		}
	}
}

// Asleep returns how long the computer has been suspended since the clock was made.
func (c *System) Asleep() time.Duration { return time.Duration(c.asleep.Load()) }

// Elapsed is a clock that shows the time since it was made, as package time measures it. In a bubble of
// testing/synctest, this is the bubble's time. Unlike System, it need not include suspensions.
type Elapsed struct{ begin time.Time }

// NewElapsed returns an Elapsed clock that shows 0.
func NewElapsed() Elapsed { return Elapsed{time.Now()} }

// Now returns the time.
func (c Elapsed) Now() parley.Tick { return parley.Tick(time.Since(c.begin)) }

// Skewed is a clock that is wrong, for tests and fault injection.
type Skewed struct {
	Clock
	Offset parley.Tick // how far it is ahead
	Drift  int64       // how much faster it runs, in parts per million
}

// Now returns the time that the wrong clock shows.
func (c Skewed) Now() parley.Tick {
	t := c.Clock.Now()
	whole, part := t/1_000_000, t%1_000_000
	return t + c.Offset + whole*parley.Tick(c.Drift) + part*parley.Tick(c.Drift)/1_000_000
}
