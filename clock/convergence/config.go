package convergence

import (
	"cmp"
	"fmt"

	"parley"
)

// Begin says how the clocks come together initially. After a restart a process joins, whatever Begin says.
type Begin uint8

// The ways to begin.
const (
	// Together is the lecture's assumption: all processes begin at the same time, with clocks near one
	// multiple of the period (see Plan.Initial).
	Together Begin = iota
	// Cold assumes nothing about the clocks. A process that gets a Request of kind Propose sends START to
	// all, and so does a process that has received START from m+1 processes. A process that has received
	// START from 2m+1 processes begins, at logical time 0. All processes must be up when the first one
	// begins.
	Cold
	// Joining means that the others are already running.
	Joining
	// Either means that the others are already running, or begin at the same time, or have lost their clocks.
	// A process sends START and asks for the time, and repeats both, until one of them has given it a clock.
	Either
)

var begins = [...]string{"together", "cold", "joining", "either"}

func (b Begin) String() string { return begins[b] }

// Config configures one system of clocks. Times are in ticks.
type Config struct {
	N, M int
	// Least is the shortest time that a message takes; 0 means 1. Eps is the largest error of a reading; 0 means 899.
	// If no message takes longer than Least+Eps, a round trip takes at most 2*(Least+Eps). A reading that takes
	// longer is discarded. The defaults suit the simulator.
	Least, Eps parley.Tick
	// Rho is the largest drift of a correct hardware clock, in parts per million. 0 means 100.
	Rho int64
	// Period is R, the time from one resynchronization to the next. 0 means a short period that suffices.
	Period parley.Tick
	// Slew is how much faster or slower than the hardware a logical clock may run, in parts per million. 0
	// means 50,000.
	Slew int64
	Form Form
	// Begin says how the clocks come together initially.
	Begin Begin
	// Resyncs ends the protocol: the last resynchronization is at logical time Resyncs*Period. 0 means that it
	// never ends.
	Resyncs int
	// Readings is the maximum number of attempts to read each clock in a resynchronization. More than one attempt
	// helps on links on which a round trip may take too long by chance. 0 means 1.
	Readings int
	// Late is how late a process may act. 0 means that it is punctual, with one exception: it may begin a
	// resynchronization late, by at most the error of a clock.
	Late parley.Tick
	// Delta is the assumed largest difference of correct clocks. 0 means the delta of the theorem. With a smaller
	// Delta, nothing is promised.
	Delta parley.Tick
}

// Plan holds a Config with its defaults, and the values derived from it.
type Plan struct {
	Config // with defaults filled in
	// Theorem is the smallest delta that the theorem allows, for clocks that count whole ticks. Config.Delta
	// is the delta in use. If n <= 3m, the theorem allows no delta, and Theorem is the delta for n = 3m+1.
	Theorem parley.Tick
	// Error is eps plus the errors that come from reading drifting clocks in whole ticks.
	Error parley.Tick
	// Threshold is delta + Error: a larger difference counts as 0.
	Threshold parley.Tick
	// RoundTrip is the longest time of a reading, on a clock that drifts.
	RoundTrip parley.Tick
	// Window is how long a process waits after the beginning of a resynchronization before it adjusts its clock. By
	// then all others have read the clock.
	Window parley.Tick
	// Span is the time over which an adjustment is spread.
	Span parley.Tick
	// Initial is the largest difference of clocks that begin together: delta without the drift of a period.
	Initial parley.Tick
	// Ever is the largest difference of correct clocks at any time. It is a little more than delta, because
	// processes spread their adjustments at different times.
	Ever parley.Tick
	// Pulls is a number of resynchronizations. If clocks began too far apart, because messages of the start
	// were late, they are within delta at the resynchronization of this number. That holds as long as no
	// process lies. See Shown.Checked.
	Pulls int
}

// The limits of a Config, which keep everything computed from it within 63 bits.
const (
	maxTicks   = parley.Tick(1) << 44 // about five hours
	maxResyncs = 1 << 16
	maxPPM     = 500_000
	maxAsked   = 100
	minSlew    = 10
)

// Plan fills in the defaults of a Config, and computes the derived values.
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

// plan computes the plan of a Config whose defaults are filled in.
func (c Config) plan() (Plan, error) {
	p := Plan{Config: c, RoundTrip: 2 * (c.Least + c.Eps)}
	p.RoundTrip += million(p.RoundTrip, c.Rho) + 1
	// The window depends on delta, and delta on the window: find the least solution.
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
	// A process must have settled before the next resynchronization of any other process, and leave a joiner
	// the time to read it between the two.
	if need := p.settled() + 2*p.Threshold + p.RoundTrip; need > c.Period {
		return p, parley.FlagErrorf("period", "%d ticks are too short: to read the clocks takes %d, and an adjustment "+
			"of up to %d takes %d with --slew %d; %d are needed", c.Period, p.Window, p.Threshold, p.Span, c.Slew, need)
	}
	return p, nil
}

// solve computes what follows from a delta, and the delta that the theorem then demands.
//
// The terms in addition to those of the theorem: two ticks because clocks show whole ticks, and one for the
// rounded mean; the drift during the round trip; and the drift between the reading of a clock and the end of
// the window, at either of two processes. The lateness of processes and the time to ask again make the window
// longer. The floor of (m-1) eps lets a joiner count after its first resynchronization.
func (p *Plan) solve(delta parley.Tick) {
	asking := parley.Tick(p.Readings) * p.RoundTrip
	p.Error = p.Eps + 3 + million(p.RoundTrip, 2*p.Rho) + million(2*delta+asking+2*p.Late, 2*p.Rho)
	p.Threshold = delta + p.Error
	p.Window = p.Threshold + asking + million(asking, 2*p.Rho) + 2 + p.Late
	largest := p.Threshold + p.Error // of a joiner
	p.Span = share(largest, 1_000_000, parley.Tick(p.Slew)) + 1
	interval := p.Period + p.Window + 2*delta + p.Late
	drift := million(interval, 2*p.Rho)
	p.Initial = delta - drift
	p.Theorem = max(theorem(p.N, max(1, p.N-3*p.M), p.Error, p.Rho, interval), parley.Tick(p.M-1)*p.Error)
	if p.Begin == Cold || p.Begin == Either {
		// Two delays, each of which may be Least+2*Eps if the way back is short.
		p.Theorem = max(p.Theorem, 2*p.Least+4*p.Eps+drift+2)
	}
}

// formula says how Ever follows from the configuration.
func (p *Plan) formula() string {
	text := fmt.Sprintf("Bound: %d = delta + delta * slew / 10^6, with delta = %d and slew = %d", p.Ever, p.Delta, p.Slew)
	period := p.Period + p.Window + 2*p.Delta + p.Late
	if p.N > 3*p.M && p.Delta == theorem(p.N, p.N-3*p.M, p.Error, p.Rho, period) {
		text += fmt.Sprintf("; delta = (2 * eps * (n-1)/n + 2 * rho * period) * n/(n-3m), with n = %d, m = %d, eps = %d, "+
			"rho = %d / 10^6 and period = %d", p.N, p.M, p.Error, p.Rho, period)
	}
	return text + "."
}

// mostPulls is the value of Pulls if no number suffices: if n <= 3m, or if delta is less than that of the
// theorem, so that nothing is promised.
const mostPulls = 1000

// pulls computes Pulls. At the first resynchronization, any two processes that each find n-m clocks within the
// threshold have a correct one of these in common, so they are at most two thresholds and two errors apart.
// Each time, either of the two uses its own clock in place of at most m others, which makes their means differ
// by 2m/n of their difference. For all other clocks they use readings that differ by two errors.
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

// settled returns how far into a period all correct processes had settled when a completed reading began, on a
// clock that is at most a threshold off.
func (p *Plan) settled() parley.Tick {
	return p.Window + p.Span + 2*p.Threshold + p.RoundTrip + 2*p.Late
}

// late returns how late a process may begin a resynchronization.
func (p *Plan) late() parley.Tick {
	if p.Late > 0 {
		return p.Late
	}
	return p.Threshold
}

// Began reports whether a process whose clock shows this time when it starts to count has just begun. A
// process that joins others starts in a later period.
func (p Plan) Began(shows parley.Tick) bool { return 0 <= shows && shows <= p.Period/4+p.RoundTrip }

// check returns what is wrong with c in itself, or nil. Whether n processes can tolerate m faults is for the
// protocol's Bound.
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
		return parley.FlagErrorf("resyncs", "%d: allowed are 0 (no end) to %d", c.Resyncs, maxResyncs)
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
