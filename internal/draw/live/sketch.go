package live

import (
	"fmt"
	"math"

	"parley/internal/draw/scene"
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
)

func (s *sketch) text(role string, x, y int, align, tone, text string) *scene.Mark {
	return s.add(scene.Mark{
		Shape: scene.Text, Role: role, X: x, Y: y, Align: align, Parts: []scene.Part{{Text: text, Tone: tone}},
	})
}

// tone returns the tone of a text about a node.
func tone(bad bool) string {
	if bad {
		return "fault"
	}
	return "text"
}

// tip sets the words of the marks from the given one on, and ref what they show.
func (s *sketch) tip(from int, words string) {
	for i := from; i < len(s.marks); i++ {
		s.marks[i].Tip = words
	}
}

func (s *sketch) ref(from int, ref string) {
	for i := from; i < len(s.marks); i++ {
		s.marks[i].Ref = ref
	}
}

// arrow draws a message, in the color of its sender.
func (s *sketch) arrow(x1, y1, x2, y2 int, of scene.Ink) *scene.Mark {
	m := s.line("arrow", x1, y1, x2, y2)
	m.Arrow, m.Ink = true, of
	return m
}

// stopped draws a message that does not arrive, with a bar across its end.
func (s *sketch) stopped(x1, y1, x2, y2 int) {
	const half = 5
	dx, dy := float64(x2-x1), float64(y2-y1)
	length := max(math.Hypot(dx, dy), 1)
	x, y := int(math.Round(-dy/length*half)), int(math.Round(dx/length*half))
	s.line("missing", x1, y1, x2, y2)
	s.path("missed", "M%d,%d l%d,%d", x2-x, y2-y, 2*x, 2*y)
}

// ring draws the sign of a request, full that of a delivery, and hollow that of an indication.
func (s *sketch) ring(x, y int) { s.circle("asked", x, y) }

func (s *sketch) full(x, y int) { s.path("deliver", diamond, x, y-5) }

func (s *sketch) hollow(x, y int) { s.path("indicate", diamond, x, y-5) }

const diamond = "M%d,%d l5,5 l-5,5 l-5,-5 Z"

// ended draws the sign of a process that was killed, and again that of one that was started again.
func (s *sketch) ended(x, y int) { s.path("ended", "M%d,%d l10,10 m0,-10 l-10,10", x-5, y-5) }

func (s *sketch) again(x, y int) {
	s.path("again", "M%d,%d a6,6 0 1 1 -5,-3 m-3,-3 l4,3 l-3,4", x+6, y)
}

// paused draws a hatched bar.
func (s *sketch) paused(x, y, w, h int) {
	const apart = 7
	lines := ""
	for c := -h + apart; c < w; c += apart { // from the bottom at c to the top at c+h
		a, b := max(c, 0), min(c+h, w)
		lines += fmt.Sprintf("M%d,%d L%d,%d ", x+a, y+h-(a-c), x+b, y+h-(b-c))
	}
	s.rect("stage", x, y, w, h)
	if lines != "" {
		s.path("stage-hatch", "%s", lines[:len(lines)-1])
	}
}

// severed draws a cut between two heights, or its end.
func (s *sketch) severed(role string, x, y1, y2 int) {
	s.line(role, x, y1, x, y2)
	s.line(role, x-5, y1, x+5, y1)
	s.line(role, x-5, y2, x+5, y2)
}

// signs are the signs of a picture with their meanings. The legend always has all of them, so that it always has the
// same height.
var signs = []struct {
	means string
	draw  func(s *sketch, x, y int)
}{
	{"message, in the color of its sender", func(s *sketch, x, y int) { s.arrow(x, y, x+26, y, 1) }},
	{"request", func(s *sketch, x, y int) { s.ring(x+13, y) }},
	{"delivery or decision", func(s *sketch, x, y int) { s.full(x+13, y) }},
	{"view, suspicion", func(s *sketch, x, y int) { s.hollow(x+13, y) }},
	{"paused", func(s *sketch, x, y int) { s.paused(x, y-7, 26, 14) }},
	{"killed, and down", func(s *sketch, x, y int) {
		s.line("down", x, y, x+26, y)
		s.ended(x+6, y)
	}},
	{"started again", func(s *sketch, x, y int) { s.again(x+13, y) }},
	{"link cut", func(s *sketch, x, y int) { s.severed("severed", x+13, y-7, y+7) }},
	{"message that has not arrived", func(s *sketch, x, y int) { s.stopped(x, y, x+24, y) }},
}

// legend draws the signs below a height, in rows, and returns the height below.
func (s *sketch) legend(width, y int) int {
	const room, gap, row = 33, 20, 22 // of a sign, and between two of them
	x := edge
	for _, one := range signs {
		w := room + scene.Wide("note", one.means)
		if x > edge && x+w > width-edge {
			x, y = edge, y+row
		}
		one.draw(s, x, y)
		s.text("note", x+room, y+4, start, "faint", one.means)
		x += w + gap
	}
	return y + row/2
}
