// Package scale has the geometry that several pictures share: the scale of a time axis, and hatching.
package scale

import (
	"fmt"
	"strings"

	"parley"
)

// Axis is a scale of time from left to right.
type Axis struct {
	From, To    parley.Tick
	Left, Width int // pixels
}

// At returns the position of a time. Times outside of the scale are at its ends.
func (a Axis) At(t parley.Tick) int {
	t = min(max(t, a.From), a.To)
	return a.Left + int(float64(t-a.From)/float64(max(a.To-a.From, 1))*float64(a.Width))
}

// Step returns the distance of the labels of a scale of the given length, in units: 1, 2 or 5 times a power of 10, and
// at least least pixels.
func Step(units parley.Tick, pixels, least int) parley.Tick {
	for power := parley.Tick(1); ; power *= 10 {
		for _, by := range []parley.Tick{1, 2, 5} {
			if by*power*parley.Tick(pixels) >= units*parley.Tick(least) || power > 1<<55 {
				return by * power
			}
		}
	}
}

// Ticks returns the times of labels that are at least least pixels apart.
func (a Axis) Ticks(least int) (out []parley.Tick) {
	by := Step(a.To-a.From, a.Width, least)
	for t := (a.From + by - 1) / by * by; t <= a.To; t += by {
		out = append(out, t)
	}
	return out
}

// Hatching returns lines within a rectangle, in the given directions.
func Hatching(directions string, x, y, w, h int) string {
	const apart = 7
	var b strings.Builder
	line := func(x1, y1, x2, y2 int) { fmt.Fprintf(&b, "M%d,%d L%d,%d ", x1, y1, x2, y2) }
	for _, d := range directions {
		switch d {
		case '|':
			for c := apart / 2; c < w; c += apart {
				line(x+c, y, x+c, y+h)
			}
		case '-':
			for c := 4; c < h; c += apart {
				line(x, y+c, x+w, y+c)
			}
		default:
			for c := -h + apart; c < w; c += apart { // from the bottom at c to the top at c+h
				a, b := max(c, 0), min(c+h, w)
				y1, y2 := y+h-(a-c), y+h-(b-c)
				if d == '\\' {
					y1, y2 = 2*y+h-y1, 2*y+h-y2
				}
				line(x+a, y1, x+b, y2)
			}
		}
	}
	return strings.TrimSpace(b.String())
}
