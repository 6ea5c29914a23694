package host

import (
	"testing"
	"time"

	"parley"
)

// byHand is a clock that is set.
type byHand parley.Tick

func (c byHand) Now() parley.Tick { return parley.Tick(c) }

// A skewed clock is ahead by its offset, and by its drift's share of what has passed.
func TestSkewed(t *testing.T) {
	const hour = parley.Tick(time.Hour)
	for _, c := range []struct {
		at, offset parley.Tick
		drift      int64
		want       parley.Tick
	}{
		{hour, 5, 0, hour + 5},
		{hour, 0, 100, hour + 360_000_000},
		{hour, -7, -100, hour - 360_000_000 - 7},
		{1_000_000_000_000_000_000, 0, 100_000, 1_100_000_000_000_000_000},
		{999_999, 0, 1, 999_999},
		{1_000_000, 0, 1, 1_000_001},
	} {
		if got := (Skewed{Clock: byHand(c.at), Offset: c.offset, Drift: c.drift}).Now(); got != c.want {
			t.Errorf("%+v: it shows %d", c, got)
		}
	}
}

// The system's clock never goes back, and counts the time for which the machine was suspended
// a millisecond after it is looked at, and not before: here a second of it is made up.
func TestSuspended(t *testing.T) {
	c := NewSystem()
	before := c.Now()
	for range 1000 {
		if now := c.Now(); now < before {
			t.Fatalf("it goes back from %d to %d", before, now)
		} else {
			before = now
		}
	}
	if c.Asleep() != 0 {
		t.Errorf("it was suspended for %v", c.Asleep())
	}
	c.behind -= time.Second // as if that much had passed since the machine was booted
	for end := time.Now().Add(10 * time.Second); c.Asleep() == 0 && time.Now().Before(end); {
		time.Sleep(2 * time.Millisecond)
		before = c.Now()
	}
	if slept := c.Asleep(); slept < 990*time.Millisecond || slept > 1100*time.Millisecond {
		t.Errorf("it was suspended for %v", slept)
	}
	if awake := time.Since(c.begin); before < parley.Tick(990*time.Millisecond) || c.Now()-parley.Tick(awake) < 9e8 {
		t.Errorf("it shows %v", time.Duration(before))
	}
}
