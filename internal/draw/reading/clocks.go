package reading

import (
	"slices"
	"sort"

	"parley"
	"parley/trace"
)

// Clocks are the logical clocks of the processes in a run.
type Clocks struct {
	Apart   parley.Tick // the promise: correct clocks never differ by more
	Formula string      // how Apart follows from the configuration
	Lines   []ClockLine // of the processes that show one, in order
	// Spread has, for each time at which a correct clock has a corner, how far the correct clocks are apart and the
	// middle between the first and the last of them.
	Spread []Spread
	// Silent are the faulty processes of which no clock is known.
	Silent []parley.ID
	Over   parley.Tick // the time of the last event
}

// ClockLine is the clock of one process. A clock that counts again begins another stretch.
type ClockLine struct {
	At        parley.ID
	Stretches [][]ClockPoint
}

// ClockPoint is a corner of a clock: what it shows at a true time, and what happens there in words.
type ClockPoint struct {
	When, Shows parley.Tick
	Kind        parley.CornerKind
	Event       uint64
	Says        string
}

// Spread is how far correct clocks are apart at a true time.
type Spread struct{ When, Apart, Middle parley.Tick }

// ClocksOf reads the clocks from a run. It returns false if the protocol keeps none, or no correct process has one.
func ClocksOf(p parley.Protocol, events []trace.Event, s Style) (out Clocks, ok bool) {
	if p.Clock == nil {
		return out, false
	}
	words := Words{s, p}
	lines := make([]ClockLine, p.N)
	for _, e := range events {
		out.Over = max(out.Over, e.Time)
		if e.Op != trace.Deliver || int(e.At) >= p.N {
			continue
		}
		c, corner := p.Clock.Corner(e.Msg)
		if !corner {
			continue
		}
		line := &lines[e.At]
		if c.Kind == parley.CornerBegins || len(line.Stretches) == 0 {
			line.Stretches = append(line.Stretches, nil)
		}
		last := &line.Stretches[len(line.Stretches)-1]
		*last = append(*last, ClockPoint{e.Time, c.Shows, c.Kind, e.ID, words.Does(e)})
	}
	out.Apart, out.Formula = p.Clock.Apart, p.Clock.Formula
	for i := range lines {
		lines[i].At = parley.ID(i)
		switch {
		case len(lines[i].Stretches) > 0:
			out.Lines = append(out.Lines, lines[i])
		case s.Faulty.Has(parley.ID(i)):
			out.Silent = append(out.Silent, parley.ID(i))
		}
	}
	out.spread(s.Faulty)
	return out, len(out.Spread) > 1
}

// known returns until when all correct clocks are known that count: a clock is known until its last corner.
func (c *Clocks) known(faulty parley.Set) parley.Tick {
	until := c.Over
	for _, l := range c.Lines {
		last := l.Stretches[len(l.Stretches)-1]
		if end := last[len(last)-1]; !faulty.Has(l.At) && end.Kind != parley.CornerEnds {
			until = min(until, end.When)
		}
	}
	return until
}

// spread measures the correct clocks at each of their corners.
func (c *Clocks) spread(faulty parley.Set) {
	var times []parley.Tick
	until := c.known(faulty)
	for _, l := range c.Lines {
		for _, stretch := range l.Stretches {
			for _, point := range stretch {
				if !faulty.Has(l.At) && point.When <= until {
					times = append(times, point.When)
				}
			}
		}
	}
	slices.Sort(times)
	for _, t := range slices.Compact(times) {
		var least, most parley.Tick
		n := 0
		for _, l := range c.Lines {
			if shows, counts := l.Shows(t); counts && !faulty.Has(l.At) {
				if n == 0 {
					least, most = shows, shows
				}
				least, most = min(least, shows), max(most, shows)
				n++
			}
		}
		if n > 0 {
			c.Spread = append(c.Spread, Spread{t, most - least, least + (most-least)/2})
		}
	}
}

// Shows returns what the clock shows at a true time, and whether it counts then.
func (l ClockLine) Shows(t parley.Tick) (shows parley.Tick, ok bool) {
	for _, stretch := range l.Stretches {
		i := sort.Search(len(stretch), func(i int) bool { return stretch[i].When >= t })
		switch {
		case i == len(stretch) || i == 0 && stretch[0].When > t:
		case stretch[i].When == t:
			return stretch[i].Shows, true
		default:
			a, b := stretch[i-1], stretch[i]
			return a.Shows + between(b.Shows-a.Shows, t-a.When, b.When-a.When), true
		}
	}
	return 0, false
}

// MiddleAt returns the middle of the correct clocks at a true time, and false outside of the times in Spread.
func (c *Clocks) MiddleAt(t parley.Tick) (parley.Tick, bool) {
	i := sort.Search(len(c.Spread), func(i int) bool { return c.Spread[i].When >= t })
	switch {
	case i == len(c.Spread) || i == 0 && c.Spread[0].When > t:
		return 0, false
	case c.Spread[i].When == t:
		return c.Spread[i].Middle, true
	}
	a, b := c.Spread[i-1], c.Spread[i]
	return a.Middle + between(b.Middle-a.Middle, t-a.When, b.When-a.When), true
}

// between returns the part of a difference that belongs to a part of a time.
func between(whole, part, of parley.Tick) parley.Tick {
	return parley.Tick(float64(whole) * float64(part) / float64(of))
}
