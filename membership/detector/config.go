package detector

import (
	"flag"
	"fmt"

	"parley"
)

// Config is what all processes must know alike. What is left 0 has a default that
// fits the simulator's usual delays. All times are ticks.
type Config struct {
	N int
	// Period is the time between two heartbeats; by default 500.
	Period parley.Tick
	// Timeout is how long a process may be silent before it is suspected, at the
	// beginning; by default 1800.
	Timeout parley.Tick
	// Grow is added to the timeout of one process after each false suspicion of it,
	// by default Period, until the timeout is Most, by default 8 times Timeout.
	Grow, Most parley.Tick
	// Late is how late a process's own timer may come before the process takes it
	// that it was paused; by default 100.
	Late parley.Tick
	// Again is how many heartbeats in a row, none of them a timeout after the one
	// before, clear a suspicion; by default 2. With 1 the first sign of life does.
	Again int
	// Grace is how long a link must be broken before the others are told, by default 100: one
	// that is mended meanwhile never was.
	Grace parley.Tick
	// Delay is the bound on message delays that the operator vouches for; by default
	// 900. Nothing but Accurate depends on it.
	Delay parley.Tick
	// Beats is how many heartbeats a process sends before it rests, so that a
	// simulated run ends; 0: it never rests.
	Beats int
}

// WithDefaults returns the configuration with what was left out filled in.
func (c Config) WithDefaults() Config {
	or := func(x *parley.Tick, otherwise parley.Tick) {
		if *x == 0 {
			*x = otherwise
		}
	}
	or(&c.Period, 500)
	or(&c.Timeout, 1800)
	or(&c.Grow, c.Period)
	or(&c.Most, 8*c.Timeout)
	or(&c.Late, 100)
	or(&c.Delay, 900)
	or(&c.Grace, 100)
	if c.Again == 0 {
		c.Again = 2
	}
	return c
}

// Accurate returns nil if nobody is suspected that has not crashed, as long as no
// message takes longer than Delay, no timer comes later than Late, no link loses
// anything and clocks run at one rate: two heartbeats of a process then leave at
// most Period+Late apart and come at most Delay later, and who looks may itself be
// Late by one more. A suspicion then also comes after the last message of the link.
func (c Config) Accurate() error {
	c = c.WithDefaults()
	if need := c.Period + 2*c.Late + c.Delay; c.Timeout < need {
		return fmt.Errorf("a timeout of %d ticks is less than the period, twice the lateness and the delay: %d",
			c.Timeout, need)
	}
	return nil
}

// Detection is the time, in ticks, within which a crash is suspected, if delays and
// timers keep their bounds: the last heartbeat arrives, the timeout passes, and
// somebody looks.
func (c Config) Detection() parley.Tick {
	c = c.WithDefaults()
	return c.Delay + c.Timeout + c.Period + 2*c.Late
}

// Check tells what is wrong with a configuration.
func (c Config) Check() error {
	c = c.WithDefaults()
	wrong := func(flag, form string, args ...any) error {
		return &parley.FlagError{Flag: flag, Err: fmt.Errorf(form, args...)}
	}
	switch {
	case c.N < 1 || c.N > parley.MaxProcesses:
		return wrong("n", "%d processes: allowed are 1 to %d", c.N, parley.MaxProcesses)
	case c.Period < 1:
		return wrong("period", "%d ticks: at least 1 is needed", c.Period)
	case c.Timeout <= c.Period:
		return wrong("timeout", "%d ticks: it must be longer than the period, %d", c.Timeout, c.Period)
	case c.Most < c.Timeout:
		return wrong("most", "%d ticks: it must not be shorter than the timeout, %d", c.Most, c.Timeout)
	case min(c.Grow, c.Late, c.Grace) < 0 || c.Delay < 1:
		return wrong("delay", "growth %d, lateness %d, grace %d, delay %d: times are not negative",
			c.Grow, c.Late, c.Grace, c.Delay)
	case c.Again < 1:
		return wrong("again", "%d heartbeats: at least 1 is needed", c.Again)
	case c.Beats < 0:
		return wrong("beats", "%d heartbeats: 0 is for ever", c.Beats)
	}
	return nil
}

// flags declares the flags of a detector; what is not given is taken from def.
func flags(fs *flag.FlagSet, def Config) func(parley.Naming) (parley.Protocol, error) {
	def = def.WithDefaults()
	n := fs.Int("n", def.N, "number of `processes`")
	period := fs.Int64("period", int64(def.Period), "`ticks` between two heartbeats")
	timeout := fs.Int64("timeout", int64(def.Timeout), "`ticks` of silence that make one suspect")
	delay := fs.Int64("delay", int64(def.Delay), "`ticks` that no message takes longer than")
	again := fs.Int("again", def.Again, "how many `heartbeats` in a row clear a suspicion")
	beats := fs.Int("beats", def.Beats, "how many `heartbeats` a process sends before it rests; 0 is for ever")
	return func(parley.Naming) (parley.Protocol, error) {
		c := def
		c.N, c.Again, c.Beats = *n, *again, *beats
		c.Period, c.Timeout, c.Delay = parley.Tick(*period), parley.Tick(*timeout), parley.Tick(*delay)
		c.Most = max(c.Most, c.Timeout)
		if err := c.Check(); err != nil {
			return parley.Protocol{}, err
		}
		return New(c), nil
	}
}
