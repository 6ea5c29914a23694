package convergence

import (
	"errors"
	"fmt"
	"sort"

	"parley"
)

// The names of the properties.
const (
	ClockBound     = "clock bound"
	ClockMonotone  = "clock monotone"
	ClockRate      = "clock rate"
	NoAlarm        = "no alarm"
	Resynchronized = "resynchronized"
)

// cornerOf implements [parley.ClockView].
func cornerOf(m parley.Msg) (c parley.Corner, ok bool) {
	kinds := map[parley.Kind]parley.CornerKind{
		Enters: parley.CornerBegins, Reads: parley.CornerReads, Adjusts: parley.CornerAdjusts,
		Settles: parley.CornerSettles, Leaves: parley.CornerEnds,
	}
	kind, ok := kinds[m.Kind]
	return parley.Corner{Shows: parley.Tick(m.Value), Kind: kind}, ok
}

// grain is the error of a measurement in ticks: clocks show whole ticks, and between two corners a clock is
// read off the line between them.
const grain parley.Tick = 4

// corner is a corner of a logical clock: what it showed at a true time.
type corner struct {
	kind          parley.Kind
	when, logical parley.Tick
}

// stretch holds the corners of a process's clock during one time in which it counted.
type stretch []corner

// at returns what the clock showed at a true time, and whether the stretch covers that time. It assumes that
// the hardware clock ran evenly between two corners. If it did not, the error is at most rho times the time
// between the two.
func (c stretch) at(t parley.Tick) (parley.Tick, bool) {
	i := sort.Search(len(c), func(i int) bool { return c[i].when >= t })
	switch {
	case i == len(c) || i == 0 && c[0].when > t:
		return 0, false
	case c[i].when == t:
		return c[i].logical, true
	}
	a, b := c[i-1], c[i]
	return a.logical + share(b.logical-a.logical, t-a.when, b.when-a.when), true
}

// stretches returns the clocks of the correct processes, by process. A process that counts again, after a
// crash or an alarm, begins another stretch.
func stretches(h *parley.History) [][]stretch {
	all := make([][]stretch, h.N)
	for _, d := range h.Deliveries {
		if !h.Correct(d.At) || d.Msg.Kind < Enters || d.Msg.Kind > Leaves || int(d.At) >= h.N {
			continue
		}
		mine := &all[d.At]
		if d.Msg.Kind == Enters {
			*mine = append(*mine, nil)
		} else if len(*mine) == 0 {
			continue
		}
		last := &(*mine)[len(*mine)-1]
		*last = append(*last, corner{d.Msg.Kind, d.When, parley.Tick(d.Msg.Value)})
	}
	return all
}

// Skew is the difference of two clocks, at a true time.
type Skew struct {
	Apart parley.Tick
	When  parley.Tick
	P, Q  parley.ID
}

// Measure returns the largest difference of the logical clocks of correct processes in a run, while the clocks
// counted. The result reads covers only the instants at which a process began a resynchronization. The result ever
// covers all times, except the time after a process's last corner. Between two corners clocks run at a constant rate,
// so their difference is largest at a corner.
func Measure(h *parley.History) (reads, ever Skew) {
	all := stretches(h)
	for p := range all {
		for _, mine := range all[p] {
			for _, c := range mine {
				for q := range all {
					there, ok := show(all[q], c.when)
					if q == p || !ok {
						continue
					}
					s := Skew{apart(c.logical, there), c.when, parley.ID(p), parley.ID(q)}
					if s.Apart > ever.Apart {
						ever = s
					}
					if c.kind == Reads && s.Apart > reads.Apart {
						reads = s
					}
				}
			}
		}
	}
	return reads, ever
}

func show(of []stretch, t parley.Tick) (parley.Tick, bool) {
	for _, one := range of {
		if x, ok := one.at(t); ok {
			return x, true
		}
	}
	return 0, false
}

// properties returns the lecture's demand on clocks, and what an adjustment must not do.
func (p *Plan) properties() []parley.Property {
	return []parley.Property{
		{
			Name: ClockBound, Mode: parley.Always,
			Says: fmt.Sprintf("correct clocks are at most delta = %d ticks apart when one of them is "+
				"resynchronized, and at most %d ticks apart at any time", p.Delta, p.Ever),
			Check: p.bounded, Measure: measured, Vacuous: unread,
		},
		{
			Name: ClockMonotone, Mode: parley.Always, Says: "no correct, synchronized clock runs backward",
			Check: func(h *parley.History) error { return each(h, monotone) }, Vacuous: unread,
		},
		{
			Name: ClockRate, Mode: parley.Always,
			Says:  "no correct clock runs faster or slower than drift and slewing allow",
			Check: func(h *parley.History) error { return each(h, p.evenly) }, Vacuous: unread,
		},
		{
			Name: NoAlarm, Mode: parley.Always, Says: "no correct process reports that its own clock is wrong",
			Check: calm,
		},
		{
			Name: Resynchronized, Mode: parley.Sometimes, Says: "every correct process resynchronizes its clock",
			Check: settled,
		},
	}
}

// unread is the Vacuous of the demands on resynchronized clocks.
func unread(h *parley.History) string {
	for _, d := range h.Deliveries {
		if d.Msg.Kind == Adjusts && h.Correct(d.At) {
			return ""
		}
	}
	return "no correct clock is resynchronized"
}

func (p *Plan) bounded(h *parley.History) error {
	reads, ever := Measure(h)
	for _, w := range []struct {
		skew Skew
		most parley.Tick
	}{{reads, p.Delta}, {ever, p.Ever}} {
		if w.skew.Apart > w.most+grain {
			return fmt.Errorf("at time %d the clocks of %s and %s are %d ticks apart; allowed are %d",
				w.skew.When, h.Name(w.skew.P), h.Name(w.skew.Q), w.skew.Apart, w.most)
		}
	}
	return nil
}

func measured(h *parley.History) string {
	reads, ever := Measure(h)
	return fmt.Sprintf("at most %d ticks apart when one was resynchronized, and at most %d at any time",
		reads.Apart, ever.Apart)
}

// each checks each clock from one corner to the next.
func each(h *parley.History, check func(a, b corner) error) error {
	for id, mine := range stretches(h) {
		for _, one := range mine {
			for i := 1; i < len(one); i++ {
				if err := check(one[i-1], one[i]); err != nil {
					return fmt.Errorf("the clock of %s, %w", h.Name(parley.ID(id)), err)
				}
			}
		}
	}
	return nil
}

func monotone(a, b corner) error {
	if b.logical >= a.logical {
		return nil
	}
	return fmt.Errorf("which showed %d at time %d, shows %d at time %d", a.logical, a.when, b.logical, b.when)
}

func (p *Plan) evenly(a, b corner) error {
	passed := b.when - a.when
	rate := p.Rho + p.Slew + int64(million(parley.Tick(p.Rho), p.Slew))
	if apart(b.logical-a.logical, passed) <= million(passed, rate)+grain {
		return nil
	}
	return fmt.Errorf("from time %d to %d, advances by %d ticks and not by %d, within %d parts in a million",
		a.when, b.when, b.logical-a.logical, passed, rate)
}

func calm(h *parley.History) error {
	for _, d := range h.Deliveries {
		if d.Msg.Kind == Leaves && h.Correct(d.At) {
			return fmt.Errorf("at time %d %s %s", d.When, h.Name(d.At), d.Msg.Body)
		}
	}
	return nil
}

func settled(h *parley.History) error {
	var who parley.Set
	for _, d := range h.Deliveries {
		if d.Msg.Kind == Settles {
			who.Add(d.At)
		}
	}
	if parley.Everyone(h.N).Minus(h.Faulty).Minus(who) != (parley.Set{}) {
		return errors.New("some correct process never adjusts its clock")
	}
	return nil
}

// promises returns the promises of the theorem.
func (p *Plan) promises(a parley.RunConditions) []parley.Promise {
	because := p.lacks(a)
	holds := because == ""
	if holds {
		because = fmt.Sprintf("n > 3m: delta = %d ticks, if the clocks begin within %d and drift by at most %d parts "+
			"in a million (Lamport, Melliar-Smith 1985)", p.Delta, p.Initial, p.Rho)
		if p.Begin == Cold {
			because = fmt.Sprintf("n > 3m: delta = %d ticks, if the clocks drift by at most %d parts in a million "+
				"(Lamport, Melliar-Smith 1985; started as by Srikanth, Toueg 1987)", p.Delta, p.Rho)
		}
	}
	const slewed = "adjustments are spread over time, whatever others send"
	even, rate := !a.Processes.Paused, slewed
	if !even {
		rate = wrongClock
	}
	return []parley.Promise{
		{Property: ClockBound, Holds: holds, Because: because},
		{Property: ClockMonotone, Holds: true, Because: slewed},
		{Property: ClockRate, Holds: even, Because: rate},
		{Property: NoAlarm, Holds: holds, Because: because},
		{Property: Resynchronized, Holds: holds, Because: because},
	}
}

// lacks returns which condition of the theorem a run does not meet, or "".
func (p *Plan) lacks(a parley.RunConditions) string {
	if err := bound(a.N, a.M); err != nil {
		return err.Error()
	}
	switch {
	case a.Faulty > a.M:
		return a.Excess()
	case !p.proved():
		return fmt.Sprintf("delta = %d, and the theorem needs %d", p.Delta, p.Theorem)
	case a.Network.Late:
		return fmt.Sprintf("a message took longer than %d ticks, and a process whose clock is read too slowly "+
			"counts as faulty",
			p.Least+p.Eps)
	case a.Network.Lost || a.Network.Cut || a.Network.Disconnected:
		return "messages were lost, and a process whose clock cannot be read counts as faulty"
	case a.Processes.Restarted:
		return "a process that was down counts as faulty until its clock is synchronized"
	case a.Processes.Paused:
		return wrongClock
	}
	return ""
}

const wrongClock = "a process was paused, or its hardware clock was wrong"

// proved reports whether the theorem holds for the plan.
func (p *Plan) proved() bool { return p.Delta >= p.Theorem }
