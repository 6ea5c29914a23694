// Package draw draws runs: message diagrams, space-time diagrams, information trees, and
// runs that look the same to somebody side by side.
//
// Everything is a pure function from data to a picture: the same data give the same
// bytes. What is too big to be shown whole is folded, collapsed or counted, never refused.
package draw

import (
	"encoding/xml"
	"fmt"
	"slices"
	"strings"

	"parley/internal/draw/prose"
)

// Pictures are laid out in whole pixels, so that the same data give the same
// bytes on every machine. They stand on a light card of their own, which is
// legible on a light page and on a dark one.
const (
	figureWidth = 952 // the widest a picture gets, without the margins
	margin      = 24  // between the card's border and what is on it
)

// The colours that do not depend on values.
const (
	inkText   = "#1f2328"
	inkFaint  = "#656d76"
	inkLine   = "#c4ccd5"
	inkBand   = "#f4f6f8"
	inkCard   = "#ffffff"
	inkFault  = "#cf222e"
	inkFaulty = "#eba5a9" // the lifeline of a faulty process
	inkMixed  = "#7d8896"
)

// ink is a value's colour: as a line or a filled mark, and as the ground of text.
type ink struct{ line, fill string }

// inks are told apart without seeing red and green. The first two are kept for
// the values 0 and 1.
var inks = []ink{
	{"#2563c9", "#e6eefb"}, {"#d0760a", "#fdf1dc"},
	{"#7b4fc4", "#f0e9fb"}, {"#0b8a94", "#ddf3f5"}, {"#b83a86", "#fbe6f2"}, {"#2d8a4a", "#e3f4e8"},
	{"#80573a", "#f4ebe4"}, {"#4b5766", "#e9edf1"},
}

var noInk = ink{inkMixed, "#f1f3f5"}

// palette gives each value its ink. Where there are more values than inks the
// last ones are used again.
type palette struct{ others []string }

// newPalette gives inks to the values of a picture.
func newPalette(values []string) palette {
	var p palette
	for _, v := range values {
		if v != "0" && v != "1" && v != "" && !slices.Contains(p.others, v) {
			p.others = append(p.others, v)
		}
	}
	slices.Sort(p.others)
	return p
}

func (p palette) of(value string) ink {
	switch value {
	case "":
		return noInk
	case "0":
		return inks[0]
	case "1":
		return inks[1]
	}
	return inks[2+max(slices.Index(p.others, value), 0)%(len(inks)-2)]
}

// svg writes elements.
type svg struct{ b strings.Builder }

// put writes an element without content; attributes are names and values in turn.
func (s *svg) put(tag string, attributes ...any) {
	s.begin(tag, attributes)
	s.b.WriteString("/>\n")
}

func (s *svg) line(x1, y1, x2, y2 int, more ...any) {
	s.put("line", append([]any{"x1", x1, "y1", y1, "x2", x2, "y2", y2}, more...)...)
}

func (s *svg) rect(x, y, width, height int, more ...any) {
	s.put("rect", append([]any{"x", x, "y", y, "width", width, "height", height}, more...)...)
}

// missing draws something that set out and did not arrive.
func (s *svg) missing(x1, y1, x2, y2 int) {
	s.line(x1, y1, x2, y2, "stroke", inkMixed, "stroke-width", 1.2, "stroke-dasharray", "1 3")
	s.cross(x2, y2)
}

func (s *svg) cross(x, y int) {
	s.put("path", "d", fmt.Sprintf("M%d,%d l6,6 m0,-6 l-6,6", x-3, y-3),
		"stroke", inkFault, "stroke-width", 1.6, "fill", "none")
}

func (s *svg) open(tag string, attributes ...any) {
	s.begin(tag, attributes)
	s.b.WriteString(">\n")
}

func (s *svg) end(tag string) { s.b.WriteString("</" + tag + ">\n") }

func (s *svg) begin(tag string, attributes []any) {
	s.b.WriteString("<" + tag)
	for i := 0; i+1 < len(attributes); i += 2 {
		fmt.Fprintf(&s.b, ` %s="%s"`, attributes[i], escaped(fmt.Sprint(attributes[i+1])))
	}
}

// text writes a line of text. Its class gives it a font.
func (s *svg) text(x, y int, class, content string, attributes ...any) {
	s.begin("text", append([]any{"x", x, "y", y, "class", class}, attributes...))
	s.b.WriteString(">" + escaped(content) + "</text>\n")
}

// span is a part of a line of text in its own colour, after a gap in pixels.
type span struct {
	text, colour string
	gap          int
}

// spans writes a line of text in several colours.
func (s *svg) spans(x, y int, class string, parts []span, attributes ...any) {
	s.begin("text", append([]any{"x", x, "y", y, "class", class}, attributes...))
	s.b.WriteString(">")
	for _, p := range parts {
		attributes := []any{"fill", p.colour}
		if p.gap > 0 {
			attributes = append(attributes, "dx", p.gap)
		}
		s.begin("tspan", attributes)
		s.b.WriteString(">" + escaped(p.text) + "</tspan>")
	}
	s.b.WriteString("</text>\n")
}

// escaped makes text safe as content and as an attribute. What XML cannot hold
// becomes a question mark.
func escaped(text string) string {
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(text)); err != nil {
		panic(err) // a strings.Builder takes everything
	}
	return strings.ReplaceAll(b.String(), "\uFFFD", "?")
}

// pill draws a value: white on its colour.
func (s *svg) pill(x, y int, value string, of ink) {
	w := pillWidth(value)
	s.put("rect", "x", x-w/2, "y", y-9, "width", w, "height", 18, "rx", 9, "fill", of.line)
	s.text(x, y+4, "v", short(value), "text-anchor", "middle")
}

const pillMost = 6 // characters of a value in a pill

func short(value string) string { return prose.Cut(value, pillMost) }

func pillWidth(value string) int { return max(22, 12+7*prose.Width(short(value))) }

// monoWidth and sansWidth estimate how wide text is, for a font size in pixels.
func monoWidth(text string, size int) int { return prose.Width(text)*size*62/100 + 1 }
func sansWidth(text string, size int) int { return prose.Width(text)*size*58/100 + 1 }

// heads defines an arrow head for each colour in use.
func (s *svg) heads(colours []string) {
	s.open("defs")
	for _, c := range colours {
		s.open("marker", "id", headOfArrow(c), "viewBox", "0 0 8 8", "refX", 7, "refY", 4,
			"markerWidth", 7, "markerHeight", 7, "orient", "auto-start-reverse", "markerUnits", "userSpaceOnUse")
		s.put("path", "d", "M0,0.8 L8,4 L0,7.2 L2,4 Z", "fill", c)
		s.end("marker")
	}
	s.end("defs")
}

func headOfArrow(colour string) string { return "to-" + strings.TrimPrefix(colour, "#") }

// fonts are the classes of text, within our own pictures only: t title, s subtitle, h head, n note, p name of a
// process or path, io input and output, m message, v value in a pill.
const fonts = `
.parley text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;fill:#1f2328}
.parley .p,.parley .io,.parley .m,.parley .v{font-family:` + mono + `}
.parley .t{font-size:18px;font-weight:600}
.parley .s{font-size:13px;fill:#656d76}
.parley .h{font-size:13px;font-weight:600}
.parley .n{font-size:11px;fill:#656d76}
.parley .p{font-size:12px;font-weight:600}
.parley .io{font-size:11px;font-weight:600}
.parley .m{font-size:10px}
.parley .v{font-size:11px;font-weight:700;fill:#ffffff}
`

const mono = `ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace`

// picture is a part of a figure: it draws itself with its upper left corner at
// the origin.
type picture struct {
	width, height int
	draw          func(s *svg)
	colours       []string // of arrow heads
	legend        []legendEntry
}

// legendEntry is a sign and what it means.
type legendEntry struct {
	sign func(s *svg, x, y int) // from x on, around y
	text string
	wide int // of the sign; 26 pixels unless it is more
}

// figure puts pictures one below the other on a card, with one legend for all.
func figure(title string, parts ...picture) string {
	width, height := 200, margin
	var colours []string
	var legend []legendEntry
	for _, p := range parts {
		width = max(width, p.width)
		colours = append(colours, p.colours...)
		for _, e := range p.legend {
			if !slices.ContainsFunc(legend, func(known legendEntry) bool { return known.text == e.text }) {
				legend = append(legend, e)
			}
		}
	}
	slices.Sort(colours)
	colours = slices.Compact(colours)

	var body svg
	for i, p := range parts {
		if i > 0 {
			body.line(margin, height+18, margin+width, height+18,
				"stroke", "#e2e6ea", "stroke-width", 1)
			height += 38
		}
		body.open("g", "transform", fmt.Sprintf("translate(%d,%d)", margin+(width-p.width)/2, height))
		p.draw(&body)
		body.end("g")
		height += p.height
	}
	height = body.legendRows(legend, width, height)
	height += margin

	var s svg
	full := width + 2*margin
	s.open("svg", "xmlns", "http://www.w3.org/2000/svg", "viewBox", fmt.Sprintf("0 0 %d %d", full, height),
		"width", full, "height", height, "class", "parley", "role", "img", "aria-label", title)
	s.b.WriteString("<title>" + escaped(title) + "</title>\n<style>" + fonts + "</style>\n")
	s.heads(colours)
	s.put("rect", "x", 0.5, "y", 0.5, "width", full-1, "height", height-1, "rx", 10,
		"fill", inkCard, "stroke", "#d0d7de")
	s.b.WriteString(body.b.String())
	s.end("svg")
	return s.b.String()
}

// legendRows writes the legend below what is there and returns the new height.
func (s *svg) legendRows(legend []legendEntry, width, y int) int {
	const gap, row = 18, 20
	if len(legend) == 0 {
		return y
	}
	y += 14 + row/2
	x := margin
	for _, e := range legend {
		sign := max(e.wide, 26)
		w := sign + 7 + sansWidth(e.text, 11)
		if x > margin && x+w > margin+width {
			x, y = margin, y+row
		}
		e.sign(s, x, y)
		s.text(x+sign+7, y+4, "n", e.text)
		x += w + gap
	}
	return y + row/2
}
