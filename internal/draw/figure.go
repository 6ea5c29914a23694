// Package draw draws runs as scenes (pictures in the form of package scene). It draws message diagrams, space-time
// diagrams, states and clocks over time, orders of delivery, and information trees. It also draws, side by side, two
// runs that look the same to one process.
//
// Every function is pure: the same data give the same scene. If a picture would be too big, the package folds or
// collapses it, or shows numbers in place of its parts. It never refuses to draw a picture.
package draw

import (
	"fmt"
	"math"
	"strings"

	"parley/internal/draw/prose"
	"parley/internal/draw/scene"
)

const (
	figureWidth = 952 // pixels: the maximum width of a picture without the margins
	margin      = 24  // between the border and the content
)

// sketch is a list of marks under construction.
type sketch struct{ marks []scene.Mark }

// add adds a mark and returns it, so that the caller can complete it before the next one.
func (s *sketch) add(m scene.Mark) *scene.Mark {
	s.marks = append(s.marks, m)
	return &s.marks[len(s.marks)-1]
}

func (s *sketch) line(role string, x1, y1, x2, y2 int) *scene.Mark {
	return s.add(scene.Mark{Shape: scene.Line, Role: role, X: x1, Y: y1, W: x2 - x1, H: y2 - y1})
}

func (s *sketch) rect(role string, x, y, width, height int) *scene.Mark {
	return s.add(scene.Mark{Shape: scene.Rect, Role: role, X: x, Y: y, W: width, H: height})
}

func (s *sketch) circle(role string, x, y int) *scene.Mark {
	return s.add(scene.Mark{Shape: scene.Circle, Role: role, X: x, Y: y})
}

func (s *sketch) path(role, form string, at ...any) *scene.Mark {
	return s.add(scene.Mark{Shape: scene.Path, Role: role, Path: fmt.Sprintf(form, at...)})
}

// The alignment of a text relative to its position.
const (
	start  = ""
	middle = "middle"
	end    = "end"
)

func (s *sketch) text(role string, x, y int, align, text string) *scene.Mark {
	return s.add(scene.Mark{Shape: scene.Text, Role: role, X: x, Y: y, Align: align, Text: text})
}

// parts adds a line of text in several colors, or in a color other than its role's.
func (s *sketch) parts(role string, x, y int, align string, parts ...scene.Part) *scene.Mark {
	return s.add(scene.Mark{Shape: scene.Text, Role: role, X: x, Y: y, Align: align, Parts: parts})
}

// toned returns text in the color of a fault, or in the normal color.
func toned(text string, fault bool) scene.Part {
	if fault {
		return scene.Part{Text: text, Tone: "fault"}
	}
	return scene.Part{Text: text, Tone: "text"}
}

// inked returns text in the ink of a value, or faint text without one.
func inked(text string, of scene.Ink) scene.Part {
	if of == 0 {
		return scene.Part{Text: text, Tone: "faint"}
	}
	return scene.Part{Text: text, Tone: "ink", Ink: of}
}

// group adds marks with an offset.
func (s *sketch) group(x, y int, marks []scene.Mark) {
	s.add(scene.Mark{Shape: scene.Group, X: x, Y: y, Marks: marks})
}

// about sets the reference of the marks from the given one on, unless they have one.
func (s *sketch) about(from int, ref string, since, until uint64) {
	for i := from; i < len(s.marks); i++ {
		if m := &s.marks[i]; m.Ref == "" {
			m.Ref, m.Since, m.Until = ref, since, until
		}
	}
}

// tip sets the words of the marks from the given one on, unless they have some.
func (s *sketch) tip(from int, words string) {
	for i := from; i < len(s.marks); i++ {
		if m := &s.marks[i]; m.Tip == "" {
			m.Tip = words
		}
	}
}

// missing draws a message that was sent and did not arrive.
func (s *sketch) missing(x1, y1, x2, y2 int) {
	s.line("missing", x1, y1, x2, y2)
	s.cross(x2, y2)
}

// omitted draws a message that arrived and that its faulty receiver failed to receive.
func (s *sketch) omitted(role string, x1, y1, x2, y2 int) *scene.Mark {
	at := len(s.marks)
	s.line(role, x1, y1, x2, y2)
	s.cross(x2, y2)
	s.marks[at+1].Role = "omitted"
	return &s.marks[at]
}

// stopped draws a message that its receiver does not take: it is down (missed), or the round of the message is over
// (late). bar is the role of the bar at the end.
func (s *sketch) stopped(role, bar string, x1, y1, x2, y2 int) *scene.Mark {
	at := len(s.marks)
	s.line(role, x1, y1, x2, y2)
	s.bar(bar, x1, y1, x2, y2)
	return &s.marks[at]
}

// bar draws a bar across the end of a line.
func (s *sketch) bar(role string, x1, y1, x2, y2 int) {
	const half = 5
	dx, dy := float64(x2-x1), float64(y2-y1)
	length := max(math.Hypot(dx, dy), 1)
	x, y := int(math.Round(-dy/length*half)), int(math.Round(dx/length*half))
	s.path(role, "M%d,%d l%d,%d", x2-x, y2-y, 2*x, 2*y)
}

func (s *sketch) cross(x, y int) { s.path("cross", "M%d,%d l6,6 m0,-6 l-6,6", x-3, y-3) }

// pill draws a value on its ink, with at most the given number of characters.
func (s *sketch) pill(x, y int, value string, of scene.Ink, most int) {
	text := prose.Cut(value, most)
	w := pillWidth(text)
	m := s.rect("pill", x-w/2, y-9, w, 18)
	m.Value, m.Ink = value, of
	s.text("value", x, y+4, middle, text).Value = value
}

// The maximum characters of a value in a pill: where there is room, and in an arrow.
const (
	pillMost  = 16
	arrowMost = 6
)

func pillWidth(value string) int { return max(22, 12+wide("value", prose.Cut(value, pillMost))) }

// wide returns the width of a text of a role, in pixels.
func wide(role, text string) int { return scene.Wide(role, text) }

// columns returns how many characters of a role's text have room.
func columns(role string, room int) int { return max(room*100/wide(role, strings.Repeat("x", 100)), 1) }

// picture is a part of a figure, with its upper left corner at the origin.
type picture struct {
	width, height int
	marks         []scene.Mark
	legend        legend
}

// legend is the list of signs in a picture.
type legend []legendEntry

// legendEntry is a sign with its meaning, or a remark without a sign.
type legendEntry struct {
	sign sign
	text string
	wide int // of the sign, if more than 26 pixels
}

// sign draws a sign, from x on and centered at y.
type sign func(s *sketch, x, y int)

// remark adds a line of its own, which says what the picture leaves out.
func (l *legend) remark(text string) {
	if text != "" {
		*l = append(*l, legendEntry{text: text})
	}
}

// add adds a sign if it is used.
func (l *legend) add(used bool, text string, by sign) {
	if used {
		*l = append(*l, legendEntry{sign: by, text: text})
	}
}

// lineSign draws the line of a legend.
func lineSign(lie, faulty bool) sign {
	return func(s *sketch, x, y int) {
		m := s.line("line-sign", x, y, x+26, y)
		m.Lie, m.Faulty = lie, faulty
	}
}

// dash returns a sign that is a line of a role, and box one that is a rectangle.
func dash(role string) sign { return func(s *sketch, x, y int) { s.line(role, x, y, x+26, y) } }

func box(role string) sign { return func(s *sketch, x, y int) { s.rect(role, x, y-7, 26, 14) } }

// faultyName is the sign of a faulty process that has no lifeline.
func faultyName(s *sketch, x, y int) { s.rect("actor-sign", x+3, y-6, 20, 12).Faulty = true }

// addFaulty adds the line of faulty processes if it is used.
func (l *legend) addFaulty(used bool) {
	l.add(used, "lifeline of a faulty process", lineSign(false, true))
}
