// Package chart draws charts as scenes (pictures in the form of package scene).
package chart

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
	Series   []Series
}

// Series is the cost of one algorithm.
type Series struct {
	Name     string
	Points   []Point // by the number of processes
	Measured []Point
}

// Point is the cost for a number of processes.
type Point struct {
	N    int
	Cost uint64
}

const costHeight = 420

// costChart is the chart under construction.
type costChart struct {
	Costs
	marks                 []scene.Mark
	left, right, top, low int
	least, most           int // of n
	high                  float64
}

const (
	width  = 1000
	margin = 24
)

// Scene draws the chart.
func (d Costs) Scene() scene.Scene {
	c := costChart{Costs: d, top: margin + 30, low: margin + 30 + costHeight, least: math.MaxInt}
	names := 0
	for _, s := range d.Series {
		names = max(names, scene.Wide("words", s.Name))
		for _, p := range s.Points {
			c.least, c.most, c.high = min(c.least, p.N), max(c.most, p.N), max(c.high, logOf(p.Cost))
		}
	}
	c.left, c.right = margin+64, width-margin-names-16
	c.high = math.Ceil(max(c.high, 1))
	c.scales()
	c.names(c.lines())
	c.legend()
	title := "Costs: " + c.Quantity
	return scene.Scene{Title: title, About: c.about(), Width: width, Height: c.low + 80, Marks: c.marks}
}

// about says how the costs of each algorithm grow.
func (c *costChart) about() string {
	var all []string
	for _, s := range c.Series {
		if first, last, ok := s.ends(); ok {
			all = append(all, fmt.Sprintf("%s: %s with %d processes, %s with %d", s.Name, prose.Number(first.Cost), first.N,
				prose.Number(last.Cost), last.N))
		}
	}
	return strings.Join(all, "; ")
}

// ends returns the first and the last point.
func (s Series) ends() (first, last Point, ok bool) {
	if len(s.Points) == 0 {
		return Point{}, Point{}, false
	}
	return s.Points[0], s.Points[len(s.Points)-1], true
}

func (c *costChart) add(m scene.Mark) *scene.Mark {
	c.marks = append(c.marks, m)
	return &c.marks[len(c.marks)-1]
}

func (c *costChart) line(role string, x1, y1, x2, y2 int) {
	c.add(scene.Mark{Shape: scene.Line, Role: role, X: x1, Y: y1, W: x2 - x1, H: y2 - y1})
}

func (c *costChart) circle(role string, x, y int, ink scene.Ink, tip string) {
	c.add(scene.Mark{Shape: scene.Circle, Role: role, X: x, Y: y, Ink: ink, Tip: tip})
}

func (c *costChart) text(role string, x, y int, align, text string) {
	c.add(scene.Mark{Shape: scene.Text, Role: role, X: x, Y: y, Align: align, Text: text})
}

// words writes a label in the color of an algorithm, or faintly.
func (c *costChart) words(x, y int, align, text string, ink scene.Ink) {
	part := scene.Part{Text: text, Tone: "faint"}
	if ink > 0 {
		part = scene.Part{Text: text, Tone: "ink", Ink: ink}
	}
	c.add(scene.Mark{Shape: scene.Text, Role: "words", X: x, Y: y, Align: align, Parts: []scene.Part{part}})
}

// legend explains lines and dots.
func (c *costChart) legend() {
	y := c.low + 52
	c.line("line-sign", margin, y, margin+26, y)
	c.circle("begins", margin, y, 0, "")
	formula := "the formula, from the fewest processes on"
	c.text("note", margin+33, y+4, "", formula)
	x := margin + 33 + scene.Wide("note", formula) + 30
	c.circle("sender-sign", x, y, 0, "")
	c.text("note", x+12, y+4, "", "measured in a run without faults")
}

// logOf returns the place of a cost on the scale. A cost of 0 is placed like 1.
func logOf(cost uint64) float64 { return math.Log10(max(1, float64(cost))) }

func (c *costChart) x(n int) int {
	return c.left + (n-c.least)*(c.right-c.left)/max(c.most-c.least, 1)
}

func (c *costChart) y(cost uint64) int { return c.low - int(logOf(cost)/c.high*costHeight) }

// scales draws the axes: powers of ten, and numbers of processes.
func (c *costChart) scales() {
	c.text("head", margin, margin+16, "", strings.ToUpper(c.Quantity[:1])+c.Quantity[1:]+" in a run without faults")
	for power := range int(c.high) + 1 {
		y := c.low - int(float64(power)/c.high*costHeight)
		c.line("guide", c.left, y, c.right, y)
		label := "10" + superscript(power)
		if power < 4 {
			label = prose.Number(uint64(math.Pow10(power)))
		}
		c.words(c.left-8, y+4, "end", label, 0)
	}
	by := max(1, (c.most-c.least+11)/12)
	for n := c.least; n <= c.most; n += by {
		c.line("axis", c.x(n), c.low, c.x(n), c.low+4)
		c.words(c.x(n), c.low+18, "middle", fmt.Sprint(n), 0)
	}
	c.line("axis", c.left, c.low, c.right, c.low)
	c.text("note", c.left-14, c.low+18, "end", "n")
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
		first, last, ok := s.ends()
		if !ok {
			continue
		}
		ink := scene.Ink(1 + i%scene.Inks)
		var path strings.Builder
		for j, p := range s.Points {
			if j > 0 {
				path.WriteString(" L")
			}
			fmt.Fprintf(&path, "%d,%d", c.x(p.N), c.y(p.Cost))
		}
		tip := fmt.Sprintf("%s: %s %s with %d processes, %s with %d", s.Name, prose.Number(first.Cost), c.Quantity, first.N,
			prose.Number(last.Cost), last.N)
		c.add(scene.Mark{Shape: scene.Path, Role: "clock", Path: "M" + path.String(), Ink: ink, Tip: tip})
		c.circle("begins", c.x(first.N), c.y(first.Cost), ink, tip)
		for _, p := range s.Measured {
			c.circle("sender", c.x(p.N), c.y(p.Cost), ink, fmt.Sprintf("%s with %d processes: %s %s, measured", s.Name, p.N,
				prose.Number(p.Cost), c.Quantity))
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
		c.words(all[i].x, all[i].y, "", all[i].text, all[i].ink)
	}
}
