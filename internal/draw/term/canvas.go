package term

import (
	"strings"

	"parley/internal/draw/reading"
)

// plain is the color of what has none, and covers other colors.
const plain = "plain"

// canvas is one line of a picture made of characters. Lines that meet in a column become the character that joins
// them.
type canvas []cellOf

// cellOf is one column: the directions in which lines leave its center, or a sign.
type cellOf struct {
	ways way
	sign string
	ink  string
}

// way is a set of directions.
type way uint8

const (
	up way = 1 << iota
	below
	left
	right
)

// joints are the characters of all sets of directions.
var joints = [16]string{
	0: " ", up: "╵", below: "╷", up | below: "│", left: "╴", right: "╶", left | right: "─",
	up | right: "╰", up | left: "╯", below | right: "╭", below | left: "╮",
	up | below | right: "├", up | below | left: "┤", left | right | below: "┬", left | right | up: "┴",
	up | below | left | right: "┼",
}

func (c canvas) add(x int, w way, ink string) {
	if x < 0 || x >= len(c) {
		return
	}
	c[x].ways |= w
	if ink != "" {
		c[x].ink = ink
	}
}

// vertical draws a line from top to bottom.
func (c canvas) vertical(x int, ink string) { c.add(x, up|below, ink) }

// horizontal draws a line between two columns.
func (c canvas) horizontal(a, b int, ink string) {
	a, b = min(a, b), max(a, b)
	for x := a; x <= b; x++ {
		w := left | right
		switch x {
		case a:
			w = right
		case b:
			w = left
		}
		if a != b {
			c.add(x, w, ink)
		}
	}
}

// sign puts a sign over the lines in a column.
func (c canvas) sign(x int, sign, ink string) {
	if x >= 0 && x < len(c) {
		c[x].sign, c[x].ink = sign, ink
	}
}

// text returns the line, with colors for whole stretches.
func (c canvas) text(s reading.Style) string {
	var b strings.Builder
	for i := 0; i < len(c); {
		j, part := i, ""
		for ; j < len(c) && c[j].ink == c[i].ink; j++ {
			if sign := c[j].sign; sign != "" {
				part += sign
			} else {
				part += joints[c[j].ways]
			}
		}
		if ink := c[i].ink; ink != "" && ink != plain {
			part = paint(s, ink, part)
		}
		b.WriteString(part)
		i = j
	}
	return b.String()
}
