package draw

import (
	"strconv"

	"parley"
	"parley/internal/draw/prose"
)

// axis is a scale of time from left to right.
type axis struct {
	from, to    parley.Tick
	left, width int // pixels
}

// at returns the position of a time. Times outside of the scale are at its ends.
func (a axis) at(t parley.Tick) int {
	t = min(max(t, a.from), a.to)
	return a.left + int(float64(t-a.from)/float64(max(a.to-a.from, 1))*float64(a.width))
}

// step returns the distance of the labels of a scale of the given length, in units: 1, 2 or 5 times a power of 10,
// and at least least pixels.
func step(units parley.Tick, pixels, least int) parley.Tick {
	for power := parley.Tick(1); ; power *= 10 {
		for _, by := range []parley.Tick{1, 2, 5} {
			if by*power*parley.Tick(pixels) >= units*parley.Tick(least) || power > 1<<55 {
				return by * power
			}
		}
	}
}

// draw draws the scale from the height top to the height low, with its labels below.
func (a axis) draw(s *sketch, top, low int, unit string) {
	longest := wide("words", prose.Number(uint64(max(a.to, 0))))
	by := step(a.to-a.from, a.width, longest+24)
	first := wide("words", prose.Number(uint64(a.from)))
	for t := (a.from + by - 1) / by * by; t <= a.to; t += by {
		x := a.at(t)
		s.line("guide", x, top, x, low+4).Value = strconv.FormatInt(int64(t), 10) // a page finds times by these
		s.parts("words", x, low+17, middle, inked(prose.Number(uint64(t)), 0))
	}
	s.line("axis", a.left, low, a.left+a.width, low)
	s.text("note", a.left-6-first/2, low+17, end, unit)
}
