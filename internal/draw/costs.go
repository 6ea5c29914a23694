package draw

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"parley/internal/draw/prose"
	"parley/internal/draw/scene"
)

// Costs is a chart of costs against the number of processes, on a logarithmic scale: a line for each algorithm, which
// begins where it tolerates the faults, and a dot for each run that was measured.
type Costs struct {
	Quantity string // what is counted, such as messages
	Series   []CostSeries
}

// CostSeries is the cost of one algorithm.
type CostSeries struct {
	Name     string
	Points   []CostPoint // by the number of processes
	Measured []CostPoint
}

// CostPoint is the cost for a number of processes.
type CostPoint struct {
	N    int
	Cost uint64
}

func (Costs) values() []string { return nil }

const costHeight = 420

// costChart is the chart under construction.
type costChart struct {
	Costs
	sketch
	left, right, top, low int
	least, most           int // of n
	high                  float64
}

func (d Costs) picture(scene.Palette, int) picture {
	c := costChart{Costs: d, top: 30, low: 30 + costHeight, least: math.MaxInt}
	names := 0
	for _, s := range d.Series {
		names = max(names, wide("words", s.Name))
		for _, p := range s.Points {
			c.least, c.most, c.high = min(c.least, p.N), max(c.most, p.N), max(c.high, logOf(p.Cost))
		}
	}
	c.left, c.right = 64, figureWidth-names-16
	c.high = math.Ceil(max(c.high, 1))
	c.scales()
	c.names(c.lines())
	return picture{width: figureWidth, height: c.low + 34, marks: c.marks, legend: legend{
		{text: "the formula, from the fewest processes on", sign: func(s *sketch, x, y int) {
			s.line("line-sign", x, y, x+26, y)
			s.circle("begins", x, y)
		}},
		{text: "measured", sign: func(s *sketch, x, y int) { s.circle("sender-sign", x+13, y) }},
	}}
}

// logOf returns the place of a cost on the scale. A cost of 0 is placed like 1.
func logOf(cost uint64) float64 { return math.Log10(max(1, float64(cost))) }

func (c *costChart) x(n int) int {
	return c.left + (n-c.least)*(c.right-c.left)/max(c.most-c.least, 1)
}

func (c *costChart) y(cost uint64) int { return c.low - int(logOf(cost)/c.high*costHeight) }

// scales draws the axes: powers of ten, and numbers of processes.
func (c *costChart) scales() {
	c.text("head", 0, 16, start, strings.ToUpper(c.Quantity[:1])+c.Quantity[1:]+" in a run without faults")
	for power := range int(c.high) + 1 {
		y := c.low - int(float64(power)/c.high*costHeight)
		c.line("guide", c.left, y, c.right, y)
		label := "10" + superscript(power)
		if power < 4 {
			label = prose.Number(uint64(math.Pow10(power)))
		}
		c.parts("words", c.left-8, y+4, end, inked(label, 0))
	}
	by := max(1, (c.most-c.least+11)/12)
	for n := c.least; n <= c.most; n += by {
		c.line("axis", c.x(n), c.low, c.x(n), c.low+4)
		c.parts("words", c.x(n), c.low+18, middle, inked(fmt.Sprint(n), 0))
	}
	c.line("axis", c.left, c.low, c.right, c.low)
	c.text("note", c.left-14, c.low+18, end, "n")
}

// superscript returns a number as an exponent.
func superscript(n int) string {
	return strings.Map(func(r rune) rune { return []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")[r-'0'] }, fmt.Sprint(n))
}

// costName is a name at the end of a line.
type costName struct {
	text string
	x, y int
	ink  scene.Ink
}

// lines draws the lines and dots, and returns the names to write.
func (c *costChart) lines() (names []costName) {
	for i, s := range c.Series {
		if len(s.Points) == 0 {
			continue
		}
		ink, from := scene.Ink(1+i%scene.Inks), len(c.marks)
		var path strings.Builder
		for j, p := range s.Points {
			if j > 0 {
				path.WriteString(" L")
			}
			fmt.Fprintf(&path, "%d,%d", c.x(p.N), c.y(p.Cost))
		}
		c.path("clock", "M%s", path.String()).Ink = ink
		first, last := s.Points[0], s.Points[len(s.Points)-1]
		c.circle("begins", c.x(first.N), c.y(first.Cost)).Ink = ink
		c.tip(from, fmt.Sprintf("%s: %s %s with %d processes, %s with %d", s.Name, prose.Number(first.Cost), c.Quantity,
			first.N, prose.Number(last.Cost), last.N))
		for _, p := range s.Measured {
			m := c.circle("sender", c.x(p.N), c.y(p.Cost))
			m.Ink, m.Tip = ink, fmt.Sprintf("%s with %d processes: %s %s, measured", s.Name, p.N, prose.Number(p.Cost), c.Quantity)
		}
		names = append(names, costName{s.Name, c.right + 10, c.y(last.Cost) + 4, ink})
	}
	return names
}

// names writes the names beside the ends of their lines, none over another.
func (c *costChart) names(all []costName) {
	slices.SortStableFunc(all, func(a, b costName) int { return b.y - a.y })
	for i := range all {
		if i > 0 {
			all[i].y = min(all[i].y, all[i-1].y-15)
		}
		c.parts("words", all[i].x, all[i].y, start, inked(all[i].text, all[i].ink))
	}
}
