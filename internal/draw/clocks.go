package draw

import (
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/internal/draw/reading"
	"parley/internal/draw/scale"
	"parley/internal/draw/scene"
)

// Clocks draws how far the correct clocks are apart over time, against the promised bound, and below that where each
// clock is, relative to the middle of the correct ones.
type Clocks struct {
	reading.Style
	reading.Clocks
}

func (Clocks) values() []string { return nil }

const (
	smallDiamond = "M%d,%d l4,4 l-4,4 l-4,-4 Z"
	skewHeight   = 110
	offsetHeight = 220
	mostNames    = 14 // maximum clocks with their names
)

// dials is the picture of clocks under construction.
type dials struct {
	Clocks
	axis  scale.Axis
	top   int         // of the offsets
	scale parley.Tick // the largest offset
	used  map[string]bool
}

func (d Clocks) picture(scene.Palette, int) picture {
	names, figures := 0, 0
	for _, l := range d.Lines {
		names = max(names, wide("name", d.Called(l.At)))
	}
	c := dials{Clocks: d, used: make(map[string]bool)}
	c.scale = c.largest()
	for _, t := range []parley.Tick{c.Apart, c.highest(), c.scale * 10} {
		figures = max(figures, wide("words", "+"+clockTime(t)))
	}
	c.axis = scale.Axis{From: d.Spread[0].When, To: max(d.Spread[len(d.Spread)-1].When, d.Spread[0].When+1),
		Left: figures + 12, Width: figureWidth - figures - names - 30}
	c.top = 28 + skewHeight + 58
	low := c.top + offsetHeight
	var ground, lines sketch
	ground.rect("band", c.axis.Left, c.top, c.axis.Width, offsetHeight)
	c.resynchronizations(&ground)
	c.skew(&lines)
	c.offsets(&lines)
	drawAxis(c.axis, &ground, c.top, low, "ticks")
	return picture{width: figureWidth, height: low + 24, legend: c.legend(),
		marks: slices.Concat(ground.marks, lines.marks)}
}

// largest returns the largest offset of a correct clock.
func (c *dials) largest() (most parley.Tick) {
	for _, s := range c.Spread {
		most = max(most, (s.Apart+1)/2)
	}
	return max(most, 1)
}

// highest returns the upper end of the scale of differences.
func (c *dials) highest() parley.Tick { return max(c.Apart, 2*c.largest()) * 115 / 100 }

// resynchronizations draws a line at the time at which a process first reads the clocks, for each time that they do.
func (c *dials) resynchronizations(s *sketch) {
	var first []parley.Tick
	for _, l := range c.Lines {
		nth := 0
		for _, stretch := range l.Stretches {
			for _, point := range stretch {
				if point.Kind != parley.CornerReads || c.Faulty.Has(l.At) {
					continue
				}
				if nth == len(first) {
					first = append(first, point.When)
				}
				first[nth] = min(first[nth], point.When)
				nth++
			}
		}
	}
	for i, t := range first {
		if t > c.axis.To {
			continue
		}
		x := c.axis.At(t)
		for _, span := range [][2]int{{28, 28 + skewHeight}, {c.top, c.top + offsetHeight}} {
			m := s.line("resync", x, span[0], x, span[1])
			m.Tip = fmt.Sprintf("resynchronization %d begins at %s", i+1, clockTime(t))
		}
		c.used["resync"] = true
	}
}

// skew draws the difference of the correct clocks and its bound.
func (c *dials) skew(s *sketch) {
	const top, low = 28, 28 + skewHeight
	most := c.Spread[0]
	for _, p := range c.Spread {
		if p.Apart > most.Apart {
			most = p
		}
	}
	s.text("head", 0, 16, start, fmt.Sprintf("Largest difference of two correct clocks: %s ticks; bound: %s ticks",
		clockTime(most.Apart), clockTime(c.Apart)))
	high := c.highest()
	y := func(apart parley.Tick) int { return low - int(float64(apart)/float64(high)*skewHeight) }
	var line, area strings.Builder
	for i, p := range c.Spread {
		if i > 0 {
			line.WriteString(" L")
		}
		fmt.Fprintf(&line, "%d,%d", c.axis.At(p.When), y(p.Apart))
	}
	fmt.Fprintf(&area, "M%s L%d,%d L%d,%d Z", line.String(), c.axis.At(c.Spread[len(c.Spread)-1].When), low,
		c.axis.At(c.Spread[0].When), low)
	s.path("skew-area", "%s", area.String()).Ink = 1
	m := s.path("skew", "M%s", line.String())
	m.Ink, m.Tip = 1, fmt.Sprintf("correct clocks differ by up to %s ticks, at %s",
		clockTime(most.Apart), clockTime(most.When))
	s.line("axis", c.axis.Left, low, c.axis.Left+c.axis.Width, low)
	b := s.line("bound", c.axis.Left, y(c.Apart), c.axis.Left+c.axis.Width, y(c.Apart))
	b.Tip = fmt.Sprintf("promised: at most %s ticks", clockTime(c.Apart))
	c.used["bound"] = true
	s.parts("words", c.axis.Left-8, y(c.Apart)+4, end, inked(clockTime(c.Apart), 0))
	s.parts("words", c.axis.Left-8, low+4, end, inked("0", 0))
}

// y returns the position of an offset, at most at the edge.
func (c *dials) y(offset parley.Tick) int {
	const edge = 12
	half := offsetHeight / 2
	at := c.top + half - int(float64(offset)/float64(c.scale)*float64(half-edge))
	if at < c.top || at > c.top+offsetHeight {
		c.used["beyond"] = true
	}
	return min(max(at, c.top+2), c.top+offsetHeight-2)
}

// offsets draws the clock of each process.
func (c *dials) offsets(s *sketch) {
	s.text("head", 0, c.top-14, start, "Each clock, ahead of (+) or behind (-) the middle of the correct clocks, in ticks")
	by := scale.Step(2*c.scale, offsetHeight, 36)
	for t := -c.scale / by * by; t <= c.scale; t += by {
		text := clockTime(max(t, -t))
		switch {
		case t < 0:
			text = "-" + text
		case t > 0:
			text = "+" + text
		}
		s.line("guide", c.axis.Left, c.y(t), c.axis.Left+c.axis.Width, c.y(t))
		s.parts("words", c.axis.Left-8, c.y(t)+4, end, inked(text, 0))
	}
	if c.Apart/2 <= c.scale {
		for _, t := range []parley.Tick{c.Apart / 2, -c.Apart / 2} {
			s.line("bound", c.axis.Left, c.y(t), c.axis.Left+c.axis.Width, c.y(t)).Tip = "half of the promised difference"
		}
	}
	type ending struct {
		y    int
		line *reading.ClockLine
	}
	var ends []ending
	var signs sketch
	for i := range c.Lines {
		l := &c.Lines[i]
		if y, drawn := c.line(s, &signs, l); drawn {
			ends = append(ends, ending{y, l})
		}
	}
	s.marks = append(s.marks, signs.marks...)
	slices.SortStableFunc(ends, func(a, b ending) int { return a.y - b.y })
	if len(ends) > mostNames {
		ends = []ending{ends[0], ends[len(ends)-1]}
		c.used["unnamed"] = true
	}
	y := c.top - 14
	for i, e := range ends { // names have room below one another, and above those that follow
		y = min(max(e.y, y+15), c.top+offsetHeight-15*(len(ends)-1-i))
		faulty := c.Faulty.Has(e.line.At)
		part := toned(c.Called(e.line.At), faulty)
		if !faulty {
			part = inked(part.Text, c.ink(e.line.At))
		}
		m := s.parts("name", c.axis.Left+c.axis.Width+8, y+4, start, part)
		m.Ref = scene.Process(e.line.At)
	}
}

// ink returns the color of a clock.
func (c *dials) ink(id parley.ID) scene.Ink { return scene.Ink(1 + int(id)%scene.Inks) }

// line draws the clock of one process, and returns where it ends.
func (c *dials) line(s, signs *sketch, l *reading.ClockLine) (y int, drawn bool) {
	faulty := c.Faulty.Has(l.At)
	if faulty {
		c.used["faulty"] = true
	}
	for _, stretch := range l.Stretches {
		var path []string
		last := len(stretch) - 1
		for _, p := range c.Spread {
			if shows, ok := l.Shows(p.When); ok && p.When >= stretch[0].When && p.When <= stretch[last].When {
				y = c.y(shows - p.Middle)
				path = append(path, fmt.Sprintf("%d,%d", c.axis.At(p.When), y))
			}
		}
		if len(path) == 0 {
			continue
		}
		drawn = true
		m := s.path("clock", "M%s", strings.Join(path, " L"))
		m.Ink, m.Faulty, m.Ref, m.Tip = c.ink(l.At), faulty, scene.Process(l.At), "the clock of "+c.Called(l.At)
		for _, point := range stretch {
			c.corner(signs, l.At, point)
		}
	}
	return y, drawn
}

// corner marks what a process does with its clock.
func (c *dials) corner(s *sketch, at parley.ID, p reading.ClockPoint) {
	middle, known := c.MiddleAt(p.When)
	if !known {
		return
	}
	x, y, first := c.axis.At(p.When), c.y(p.Shows-middle), len(s.marks)
	switch p.Kind {
	case parley.CornerBegins:
		s.circle("begins", x, y)
		c.used["begins"] = true
	case parley.CornerAdjusts:
		s.path("adjusts", smallDiamond, x, y-4)
		c.used["adjusts"] = true
	case parley.CornerEnds:
		s.cross(x, y)
		c.used["ends"] = true
	default:
		return
	}
	s.tip(first, fmt.Sprintf("%s %s, at time %s", c.Called(at), p.Says, clockTime(p.When)))
	s.about(first, scene.Event(p.Event), p.Event, 0)
	for i := first; i < len(s.marks); i++ {
		s.marks[i].Ink, s.marks[i].Faulty = c.ink(at), c.Faulty.Has(at)
	}
}

func (c *dials) legend() (out legend) {
	out.add(c.used["bound"], "promised bound", dash("bound"))
	out.add(c.used["resync"], "a resynchronization begins", func(s *sketch, x, y int) {
		s.line("resync", x+13, y-9, x+13, y+9)
	})
	out.add(c.used["begins"], "the clock counts from here", func(s *sketch, x, y int) { s.circle("begins", x+13, y) })
	out.add(c.used["adjusts"], "begins to adjust", func(s *sketch, x, y int) {
		s.path("adjusts", smallDiamond, x+13, y-4)
	})
	out.add(c.used["ends"], "no longer counts", func(s *sketch, x, y int) { s.cross(x+13, y) })
	out.add(c.used["faulty"], "clock of a faulty process", func(s *sketch, x, y int) {
		s.path("clock", "M%d,%d h26", x, y).Faulty = true
	})
	out.remark(c.Formula)
	if len(c.Silent) > 0 {
		out.remark("The trace has no clock of " + c.List(c.Silent) + ": a faulty process may show any time.")
	}
	if c.used["unnamed"] {
		out.remark("Of many clocks the first and the last are named: point at a line to read whose it is.")
	}
	if c.used["beyond"] {
		out.remark("A clock that is further away is drawn at the edge.")
	}
	if last := c.axis.To; c.Over > last {
		out.remark(fmt.Sprintf("All correct clocks are known until %s; the run ends at %s.",
			clockTime(last), clockTime(c.Over)))
	}
	out.remark("The messages are not drawn.")
	return out
}
