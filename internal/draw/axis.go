package draw

import (
	"strconv"

	"parley/internal/draw/prose"
	"parley/internal/draw/scale"
)

// drawAxis draws a scale from the height top to the height low, with its labels below.
func drawAxis(a scale.Axis, s *sketch, top, low int, unit string) {
	for _, t := range a.Ticks(wide("words", prose.Number(uint64(max(a.To, 0)))) + 24) {
		x := a.At(t)
		s.line("guide", x, top, x, low+4).Value = strconv.FormatInt(int64(t), 10) // a page finds times by these
		s.parts("words", x, low+17, middle, inked(prose.Number(uint64(t)), 0))
	}
	s.line("axis", a.Left, low, a.Left+a.Width, low)
	s.text("note", a.Left-6-wide("words", prose.Number(uint64(a.From)))/2, low+17, end, unit)
}
