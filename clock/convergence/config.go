package convergence

import (
	"cmp"

	"parley"
)

// Begin says how the clocks come together in the first place. A process that comes
// back after a crash joins, whatever it says.
type Begin uint8

// The beginnings.
const (
	// Together is the lecture's assumption: all processes begin together, with clocks
	// that are near one multiple of the period, see Plan.Initial.
	Together Begin = iota
	// Cold: nothing is assumed of the clocks. A process that is asked to begin, by a
	// Request of kind Propose, says START to all; so does one that has heard it of
	// m+1 processes; one that has heard it of 2m+1 begins, at the logical time 0. All
	// processes must be up when the first one begins.
	Cold
	// Joining: the others are running already.
	Joining
	// Either: the others are running already, or they begin as well, or they have lost
	// their clocks. A process says START and asks for the time, and does both again, until
	// one of them has given it a clock.
	Either
)

var begins = [...]string{"together", "cold", "joining", "either"}

func (b Begin) String() string { return begins[b] }

// Config is one system of clocks. Times are in ticks.
type Config struct {
	N, M int
	// Least is the shortest time that a message takes; 0 stands for 1. Eps is the
	// largest error of a reading; 0 stands for 899. A round trip takes at most
	// 2*(Least+Eps), as it does if no message takes longer than Least+Eps: a
	// reading that takes longer is none. The defaults suit the simulator.
	Least, Eps parley.Tick
	// Rho is the largest drift of a correct hardware clock, in parts in a million;
	// 0 stands for 100.
	Rho int64
	// Period is R, the time from one resynchronization to the next; 0 stands for a
	// short one in which it fits.
	Period parley.Tick
	// Slew is how much faster or slower than the hardware a logical clock may run,
	// in parts in a million; 0 stands for 50,000.
	Slew int64
	Form Form
	// Begin says how the clocks come together in the first place.
	Begin Begin
	// Resyncs ends the work: the last resynchronization is that at the logical time
	// Resyncs*Period. 0: it goes on for ever.
	Resyncs int
	// Readings is how often a clock is asked for in a resynchronization, until it is read:
	// where a round trip may take too long by chance. 0 stands for 1.
	Readings int
	// Late is how much later than it should a process may do anything; 0: it is
	// punctual, but for a beginning as late as a clock may be wrong.
	Late parley.Tick
	// Delta is how far apart correct clocks are assumed to be; 0 stands for what
	// the theorem says. With less nothing is promised.
	Delta parley.Tick
}

// Plan is what follows from a Config.
type Plan struct {
	Config // with what was left out filled in
	// Theorem is the least delta of the theorem, for clocks that tick; Config.Delta
	// is the one that is used. Where n <= 3m there is none, and the one of a system
	// with n = 3m+1 takes its place.
	Theorem parley.Tick
	// Error is eps with all that a reading in ticks of drifting clocks adds to it.
	Error parley.Tick
	// Threshold is delta + Error: a larger difference counts as 0.
	Threshold parley.Tick
	// RoundTrip is how long a reading may take, on a clock that drifts.
	RoundTrip parley.Tick
	// Window is how long a process waits from the beginning of a resynchronization,
	// so that all others have read its clock before it is adjusted.
	Window parley.Tick
	// Span is how long an adjustment is spread over.
	Span parley.Tick
	// Initial is how far apart clocks that begin together may be: delta without the
	// drift of a period.
	Initial parley.Tick
	// Ever is what correct clocks are never further apart than, at any time: while
	// adjustments are spread, which not all begin at one time, a little more than delta.
	Ever parley.Tick
	// Pulls is the number of the first resynchronization at which clocks are within delta that
	// began too far apart, because messages of the start were late: the ones before have pulled
	// them together. That holds as long as nobody lies. See Shown.Checked.
	Pulls int
}

// Limits of a Config, which keep all that is computed of it in 63 bits.
const (
	maxTicks   = parley.Tick(1) << 44 // about five hours
	maxResyncs = 1 << 16
	maxPPM     = 500_000
	maxAsked   = 100
	minSlew    = 10
)

// Plan fills in what was left out of a Config and tells what follows from it.
func (c Config) Plan() (Plan, error) {
	if err := c.check(); err != nil {
		return Plan{}, err
	}
	c.Least, c.Eps, c.Rho, c.Slew = cmp.Or(c.Least, 1), cmp.Or(c.Eps, 899), cmp.Or(c.Rho, 100), cmp.Or(c.Slew, 50_000)
	c.Readings = cmp.Or(c.Readings, 1)
	if c.Period > 0 {
		return c.plan()
	}
	for c.Period = 100_000; c.Period < maxTicks; c.Period *= 2 {
		if p, err := c.plan(); err == nil {
			return p, nil
		}
	}
	return Plan{}, parley.FlagErrorf("rho",
		"no period is long enough: --slew %d adjusts clocks too slowly for their drift", c.Slew)
}

// plan computes the plan of a Config of which nothing is left out.
func (c Config) plan() (Plan, error) {
	p := Plan{Config: c, RoundTrip: 2 * (c.Least + c.Eps)}
	p.RoundTrip += million(p.RoundTrip, c.Rho) + 1
	// The window depends on delta and delta on the window: the least solution.
	for given, tries := parley.Tick(-1), 0; given != p.Theorem; tries++ {
		given = p.Theorem
		if given > c.Period || tries == 1000 {
			return p, parley.FlagErrorf("period", "%d ticks are too long: correct clocks could drift apart as far in them",
				c.Period)
		}
		p.solve(given)
	}
	if c.Delta == 0 {
		p.Delta = p.Theorem
	} else {
		p.solve(c.Delta)
	}
	p.Ever = p.Delta + million(p.Delta, c.Slew)
	p.Pulls = p.pulls()
	// A process must have settled before the next resynchronization of any other,
	// and leave a joiner the time to read it between the two.
	if need := p.settled() + 2*p.Threshold + p.RoundTrip; need > c.Period {
		return p, parley.FlagErrorf("period", "%d ticks are too short: to read the clocks takes %d, and an adjustment "+
			"of up to %d takes %d with --slew %d; %d are needed", c.Period, p.Window, p.Threshold, p.Span, c.Slew, need)
	}
	return p, nil
}

// solve computes what follows from a delta, and from all that the theorem would
// say delta must be.
//
// The terms beyond the theorem's: two ticks because clocks show whole ones, and one for
// the rounded mean; the drift during the round trip; and the drift between the
// reading of a clock and the end of the window, at either of two processes. All that a
// process may be late by, and all that it takes to ask again, makes the window longer. The
// floor of (m-1) eps lets a joiner be in after its first resynchronization.
func (p *Plan) solve(delta parley.Tick) {
	asking := parley.Tick(p.Readings) * p.RoundTrip
	p.Error = p.Eps + 3 + million(p.RoundTrip, 2*p.Rho) + million(2*delta+asking+2*p.Late, 2*p.Rho)
	p.Threshold = delta + p.Error
	p.Window = p.Threshold + asking + million(asking, 2*p.Rho) + 2 + p.Late
	largest := p.Threshold + p.Error // a joiner's
	p.Span = share(largest, 1_000_000, parley.Tick(p.Slew)) + 1
	interval := p.Period + p.Window + 2*delta + p.Late
	drift := million(interval, 2*p.Rho)
	p.Initial = delta - drift
	p.Theorem = max(theorem(p.N, max(1, p.N-3*p.M), p.Error, p.Rho, interval), parley.Tick(p.M-1)*p.Error)
	if p.Begin == Cold || p.Begin == Either {
		// Two delays, of which each may take Least+2*Eps if the way back is short.
		p.Theorem = max(p.Theorem, 2*p.Least+4*p.Eps+drift+2)
	}
}

// mostPulls is what Pulls is where there is no such number: where n <= 3m, or delta is less than
// that of the theorem, and nothing is promised.
const mostPulls = 1000

// pulls computes Pulls. At the first resynchronization any two processes that each find n-m clocks
// within the threshold have a correct one of these in common, so that they are at most two
// thresholds and two errors apart. Each time, either of the two takes its own clock for at most m
// others, by which their means differ by 2m/n of what they are apart; of all other clocks they use
// readings that differ by two errors.
func (p *Plan) pulls() int {
	n, m := parley.Tick(p.N), parley.Tick(p.M)
	drift := million(p.Period+p.Window+2*p.Delta+p.Late, 2*p.Rho)
	apart := 2 * (p.Threshold + p.Error)
	for count := 1; count < mostPulls; count++ {
		if apart <= p.Delta {
			return count
		}
		apart = (2*m*apart + 2*(n-1)*p.Error + n*drift + n - 1) / n
	}
	return mostPulls
}

// settled is how far into a period, on a clock that is at most a threshold off, all
// correct processes had settled when a reading that is over began.
func (p *Plan) settled() parley.Tick {
	return p.Window + p.Span + 2*p.Threshold + p.RoundTrip + 2*p.Late
}

// late is how much later than it was to a process may begin a resynchronization.
func (p *Plan) late() parley.Tick {
	if p.Late > 0 {
		return p.Late
	}
	return p.Threshold
}

// Began tells of the time that a clock shows when it is in whether it has just begun: who
// joins others is in a period after they began, or later.
func (p Plan) Began(shows parley.Tick) bool { return 0 <= shows && shows <= p.Period/4+p.RoundTrip }

// check tells what is wrong with a Config in itself. Whether n processes can
// tolerate m faults is the protocol's Bound.
func (c Config) check() error {
	switch {
	case c.N < 1 || c.N > parley.MaxProcesses:
		return parley.FlagErrorf("n", "%d processes: allowed are 1 to %d", c.N, parley.MaxProcesses)
	case c.M < 0 || c.M >= c.N:
		return parley.FlagErrorf("m", "%d faults of %d processes: allowed are 0 to n-1 = %d", c.M, c.N, c.N-1)
	case int(c.Form) >= len(forms):
		return parley.FlagErrorf("form", "there is no form number %d", c.Form)
	case int(c.Begin) >= len(begins):
		return parley.FlagErrorf("begin", "there is no beginning number %d", c.Begin)
	case c.Resyncs < 0 || c.Resyncs > maxResyncs:
		return parley.FlagErrorf("resyncs", "%d: allowed are 0, for no end, to %d", c.Resyncs, maxResyncs)
	case c.Readings < 0 || c.Readings > maxAsked:
		return parley.FlagErrorf("readings", "%d: allowed are 0, for 1, to %d", c.Readings, maxAsked)
	case c.Slew > 0 && c.Slew < minSlew:
		return parley.FlagErrorf("slew", "%d parts in a million adjust no clock: allowed are %d to %d",
			c.Slew, minSlew, maxPPM)
	}
	for _, f := range c.numbers() {
		if *f.is < 0 || *f.is > f.most {
			return parley.FlagErrorf(f.name, "%d: allowed are 0, for the default, to %d", *f.is, f.most)
		}
	}
	return nil
}
