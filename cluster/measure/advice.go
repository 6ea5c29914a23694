package measure

import (
	"fmt"
	"slices"
	"time"

	"parley/cluster/agree"
	"parley/cluster/clocks"
)

// Advice recommends a length of a round and a configuration of the clocks, and gives the reasons.
type Advice struct {
	Round time.Duration // the shortest recommended round
	M     int           // the configured m, otherwise the largest that n nodes tolerate
	// Error is the recommended limit for the error of reading a clock. Delta is the maximum difference between clocks
	// with this limit.
	Error, Delta time.Duration
	Reasons      []string
	// Short says that the configured rounds are shorter than the measurement requires, even without the
	// recommended reserve.
	Short bool
}

// delayPart: a message may take 1/10 of a round, because a round of agreements with restarted nodes must have
// room for three messages and five times the slack.
const delayPart = 10

// Advise derives an advice from a measurement. It allows for twice the measured message delay and 1.5 times the
// measured wake latency.
func Advise(m Measurement) (Advice, error) {
	a := Advice{M: max(0, (m.Nodes-1)/3)}
	if m.M > 0 {
		a.M = m.M
	}
	var delay, typical time.Duration
	slowest, connected := "", 0
	for _, p := range m.Peers {
		if p.RTT.Samples == 0 {
			continue
		}
		connected++
		typical = max(typical, p.RTT.P50)
		if d := p.RTT.P999 / 2; d >= delay {
			delay, slowest = d, p.Name
		}
	}
	say := func(form string, args ...any) { a.Reasons = append(a.Reasons, fmt.Sprintf(form, args...)) }
	if m.Nodes < 4 {
		say("%d nodes tolerate no liar: n > 3m", m.Nodes)
	} else {
		say("m = %d: among %d nodes at most %d may lie, for n > 3m", a.M, m.Nodes, (m.Nodes-1)/3)
	}
	if missing := len(m.Peers) - connected; missing > 0 {
		say("%d of %d other nodes were not reached: what holds of them is not known", missing, len(m.Peers))
	}
	if connected > 0 {
		say("a message to %s, the slowest, takes %v (half of the round trip that 999 of 1000 keep to): a round of which "+
			"a tenth is for it is %v, and twice that is advised", slowest, fine(delay), fine(delayPart*delay))
	}
	slept := agree.RoundOf(m.Wake.P999)
	say("this process wakes up to %v late (999 of 1000 times): a round of which that is a seventh is %v, and half "+
		"as much again is advised", fine(m.Wake.P999), fine(slept))
	if m.Wake.Pauses > 0 {
		say("it was paused %d times for longer, for %v at most: a node counts as faulty in the rounds of a pause",
			m.Wake.Pauses, fine(m.Wake.Most))
	}
	a.Round = nice(max(2*delayPart*delay, 3*slept/2, time.Millisecond))
	a.Short = m.Round > 0 && m.Round < max(delayPart*delay, slept)
	a.Error = nice(max(typical, 50*time.Microsecond))
	plan, err := clocks.Config{Error: a.Error}.Plan(m.Nodes, a.M, max(a.Round, m.Round))
	if err != nil {
		return a, err
	}
	a.Delta = time.Duration(plan.Ever)
	say("clocks read with an error of %v, which is half of twice the usual round trip, are at most %v apart "+
		"(interactive convergence, drift %d parts in a million, every %v)",
		a.Error, fine(a.Delta), plan.Rho, time.Duration(plan.Period))
	return a, nil
}

// nice rounds up to 1, 2, or 5 times a power of ten.
func nice(d time.Duration) time.Duration {
	for unit := time.Microsecond; ; unit *= 10 {
		for _, next := range []time.Duration{unit, 2 * unit, 5 * unit} {
			if next >= d {
				return next
			}
		}
	}
}

// fine rounds to three digits for display.
func fine(d time.Duration) time.Duration {
	for unit := time.Duration(1); ; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit)
		}
	}
}

// Samples returns the minimum, the median, and the 99.9th percentile of round-trip times; 0 for an empty list.
func Samples(list []time.Duration) (min, median, p999 time.Duration) {
	list = slices.Sorted(slices.Values(list))
	if len(list) == 0 {
		return 0, 0, 0
	}
	return list[0], list[len(list)/2], list[len(list)*999/1000]
}
