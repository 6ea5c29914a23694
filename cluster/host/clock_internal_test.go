package host

import (
	"math/rand/v2"
	"testing"
	"time"

	"parley"
)

// byHand is a clock set by hand.
type byHand parley.Tick

func (c byHand) Now() parley.Tick { return parley.Tick(c) }

// A skewed clock is ahead by its offset, and by its drift's share of the elapsed time.
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

// busy is a computer with two clocks, on which time passes whenever one of them is read.
type busy struct {
	awake, boot time.Duration
	most        time.Duration // maximum time that passes before a reading
	chance      *rand.Rand
}

func (b *busy) pass() {
	if b.most > 0 {
		d := time.Duration(b.chance.Int64N(int64(b.most)))
		b.awake, b.boot = b.awake+d, b.boot+d
	}
}

func (b *busy) readAwake() time.Duration { b.pass(); return b.awake }
func (b *busy) readBoot() time.Duration  { b.pass(); return b.boot }

// The system's clock never goes back, and counts only a suspension as one, however long the computer is
// busy between two readings.
func TestBusyIsNotSuspended(t *testing.T) {
	for seed := range uint64(100) {
		b := &busy{most: 50 * time.Millisecond, boot: time.Hour, chance: rand.New(rand.NewPCG(seed, 0))}
		c := newSystem(b.readAwake, b.readBoot)
		before := c.Now()
		for range 200 {
			if now := c.Now(); now < before {
				t.Fatalf("seed %d: it goes back from %d to %d", seed, before, now)
			} else {
				before = now
			}
		}
		if c.Asleep() != 0 {
			t.Fatalf("seed %d: it was suspended for %v", seed, c.Asleep())
		}
	}
}

// The system's clock includes a suspension within a millisecond of the last comparison: all of it once the
// computer is not busy, and never more.
func TestSuspended(t *testing.T) {
	for seed := range uint64(100) {
		b := &busy{most: 50 * time.Millisecond, boot: time.Hour, chance: rand.New(rand.NewPCG(seed, 1))}
		c := newSystem(b.readAwake, b.readBoot)
		b.boot += time.Second
		for range 20 {
			c.Now()
			if slept := c.Asleep(); slept > time.Second {
				t.Fatalf("seed %d: it was suspended for %v", seed, slept)
			}
		}
		if slept := c.Asleep(); slept < 900*time.Millisecond {
			t.Errorf("seed %d: while it is busy it was suspended for %v", seed, slept)
		}
	}
	b := &busy{boot: time.Hour}
	c := newSystem(b.readAwake, b.readBoot)
	pass := func(d time.Duration) { b.awake, b.boot = b.awake+d, b.boot+d }
	pass(5 * time.Millisecond)
	c.Now()
	b.boot += time.Second
	if pass(time.Millisecond - 1); c.Now() != parley.Tick(b.awake) {
		t.Errorf("it has looked, and shows %d", c.Now())
	}
	if pass(1); c.Now() != parley.Tick(b.awake+time.Second) || c.Asleep() != time.Second {
		t.Errorf("it shows %d, and was suspended for %v", c.Now(), c.Asleep())
	}
}

// An excess at the start, because the computer was busy when the clock was made, is corrected.
func TestSuspendedAfterABusyBeginning(t *testing.T) {
	b := &busy{most: 50 * time.Millisecond, chance: rand.New(rand.NewPCG(1, 2))}
	c := newSystem(b.readAwake, b.readBoot)
	b.most = 0
	b.awake, b.boot = b.awake+time.Second, b.boot+time.Second
	c.Now()
	b.awake, b.boot = b.awake+time.Second, b.boot+3*time.Second
	c.Now()
	if c.Asleep() != 2*time.Second {
		t.Errorf("it was suspended for %v, not 2 s", c.Asleep())
	}
}

// The clocks of this computer work: they advance, and a new clock shows no suspension.
func TestSystem(t *testing.T) {
	c := NewSystem()
	if boot := c.boot(); boot <= 0 || c.boot() < boot || c.awake() < 0 {
		t.Errorf("the clocks show %v, %v and %v", boot, c.boot(), c.awake())
	}
}
