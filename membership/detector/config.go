package detector

import (
	"cmp"
	"flag"
	"fmt"

	"parley"
)

// Config must be identical on all processes. Zero fields have defaults that fit the simulator's usual delays.
// All times are in ticks.
type Config struct {
	N int
	// Period is the time between two heartbeats. The default is 500.
	Period parley.Tick
	// Timeout is how long a process may be silent before it is suspected for the first time. The default is 1800.
	Timeout parley.Tick
	// Grow is added to the timeout of a process after each false suspicion of this process, until the timeout is
	// Most. By default Grow is Period, and Most is 8 times Timeout.
	Grow, Most parley.Tick
	// Late is how late a process's own timer may fire. If it fires later, the process concludes that it was paused.
	// The default is 100.
	Late parley.Tick
	// Again is how many consecutive heartbeats clear a suspicion. The default is 2. Each heartbeat must come within a
	// timeout after the previous one. With 1 the first message of the process clears the suspicion.
	Again int
	// Grace is how long a link must be broken before heartbeats report it. The default is 100. A link that is mended
	// within this time counts as never broken.
	Grace parley.Tick
	// Delay is the operator's bound on message delays. The default is 900. Only Accurate, Detection and the promises
	// depend on it.
	Delay parley.Tick
	// Beats is how many heartbeats a process sends before it rests, so that a simulated run ends; 0 means no
	// limit.
	Beats int
}

// WithDefaults returns c with defaults in place of zero fields.
func (c Config) WithDefaults() Config {
	c.Period, c.Timeout = cmp.Or(c.Period, 500), cmp.Or(c.Timeout, 1800)
	c.Grow, c.Most = cmp.Or(c.Grow, c.Period), cmp.Or(c.Most, 8*c.Timeout)
	c.Late, c.Delay, c.Grace = cmp.Or(c.Late, 100), cmp.Or(c.Delay, 900), cmp.Or(c.Grace, 100)
	c.Again = cmp.Or(c.Again, 2)
	return c
}

// Accurate returns nil if the timeout guarantees that only crashed processes are suspected. The guarantee requires
// that no message takes longer than Delay, no timer fires later than Late, no link loses anything, and all clocks run
// at one rate. Then a process sends consecutive heartbeats at most Period+Late apart, and each arrives at most Delay
// later. The process that checks may itself be late by Late. Then a suspicion also comes after the last message on
// the link.
func (c Config) Accurate() error {
	c = c.WithDefaults()
	if need := c.Period + 2*c.Late + c.Delay; c.Timeout < need {
		return fmt.Errorf("a timeout of %d ticks is less than the sum of the period, twice the lateness, and the delay: %d",
			c.Timeout, need)
	}
	return nil
}

// Detection returns the time, in ticks, within which a crash is suspected if delays and timers keep their
// bounds. It is the sum of the times until the last heartbeat arrives, until the timeout has passed, and
// until a process checks.
func (c Config) Detection() parley.Tick {
	c = c.WithDefaults()
	return c.Delay + c.Timeout + c.Period + 2*c.Late
}

// Check returns an error that names the first fault of c, or nil.
func (c Config) Check() error {
	c = c.WithDefaults()
	switch err := parley.CheckN(c.N, 1); {
	case err != nil:
		return err
	case c.Period < 1:
		return parley.FlagErrorf("period", "%d ticks: allowed is at least 1", c.Period)
	case c.Timeout <= c.Period:
		return parley.FlagErrorf("timeout", "%d ticks: allowed are more than the period, %d", c.Timeout, c.Period)
	case c.Most < c.Timeout:
		return parley.FlagErrorf("most", "%d ticks: it must not be shorter than the timeout, %d", c.Most, c.Timeout)
	case min(c.Grow, c.Late, c.Grace) < 0 || c.Delay < 1:
		return parley.FlagErrorf("delay", "growth %d, lateness %d, grace %d, delay %d: times are not negative",
			c.Grow, c.Late, c.Grace, c.Delay)
	case c.Again < 1:
		return parley.FlagErrorf("again", "%d heartbeats: allowed is at least 1", c.Again)
	case c.Beats < 0:
		return parley.FlagErrorf("beats", "%d heartbeats: allowed are 1 and more, or 0 for no end", c.Beats)
	}
	return nil
}

func flags(fs *flag.FlagSet, c *Config) func(*Config, parley.Naming) error {
	fs.IntVar(&c.N, "n", c.N, "number of `processes`")
	fs.Int64Var((*int64)(&c.Period), "period", int64(c.Period), "time between two heartbeats, in `ticks`")
	fs.Int64Var((*int64)(&c.Timeout), "timeout", int64(c.Timeout), "duration of silence after which "+
		"a process is suspected, in `ticks`")
	fs.Int64Var((*int64)(&c.Delay), "delay", int64(c.Delay), "maximum delay of a message, in `ticks`")
	fs.IntVar(&c.Again, "again", c.Again, "`number` of consecutive heartbeats that end a suspicion, 1 or more")
	fs.IntVar(&c.Beats, "beats", c.Beats, "`number` of heartbeats that a process sends, 0 for no end")
	return func(c *Config, _ parley.Naming) error {
		switch { // 0 would mean the default
		case c.Period == 0:
			return parley.FlagErrorf("period", "0 ticks: allowed is at least 1")
		case c.Timeout == 0:
			return parley.FlagErrorf("timeout", "0 ticks: allowed are more than the period, %d", c.Period)
		case c.Delay == 0:
			return parley.FlagErrorf("delay", "0 ticks: allowed is at least 1")
		case c.Again == 0:
			return parley.FlagErrorf("again", "0 heartbeats: allowed is at least 1")
		}
		c.Most = max(c.Most, c.Timeout)
		return c.Check()
	}
}
