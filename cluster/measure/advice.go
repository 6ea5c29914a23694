package measure

import (
	"fmt"
	"slices"
	"time"

	"parley/cluster/agree"
	"parley/cluster/clocks"
)

// Advice is how long a round should be, and what clocks should go by, with the reasons.
type Advice struct {
	Round time.Duration // the shortest that is advised
	M     int           // as many liars as n nodes tolerate
	// Error is how wrong the reading of a clock should be allowed to be, and Delta how far
	// apart clocks then may be.
	Error, Delta time.Duration
	Reasons      []string
	// Short tells that the rounds that are configured are shorter than what was measured
	// needs, without the reserve that is advised.
	Short bool
}

// delayPart: a message may take a tenth of a round, for three of them and five late acts have to
// fit into one of agreements, whose nodes come back.
const delayPart = 10

// Advise tells what follows from what was measured. The advice has twice the room that
// messages took and half as much again as the process was late.
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
		say("it stood still %d times for longer, for %v at most: whoever does counts as faulty for the rounds of that time",
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

// nice rounds up to 1, 2 or 5 of a unit.
func nice(d time.Duration) time.Duration {
	for unit := time.Microsecond; ; unit *= 10 {
		for _, next := range []time.Duration{unit, 2 * unit, 5 * unit} {
			if next >= d {
				return next
			}
		}
	}
}

// fine rounds for a reader to three digits or so.
func fine(d time.Duration) time.Duration {
	for unit := time.Duration(1); ; unit *= 10 {
		if d < 1000*unit {
			return d.Round(unit)
		}
	}
}

// Samples makes round-trip times of single measurements.
func Samples(list []time.Duration) (min, median, p999 time.Duration) {
	list = slices.Sorted(slices.Values(list))
	if len(list) == 0 {
		return 0, 0, 0
	}
	return list[0], list[len(list)/2], list[len(list)*999/1000]
}
