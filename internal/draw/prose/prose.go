// Package prose formats text in a fixed-width font. It writes numbers and lists in words, and folds or shortens
// lines. The width of a text does not depend on the terminal.
package prose

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"parley"
)

// font has the widths of characters. It ignores the user's locale, which the library would use by default: the same
// text must give the same lines everywhere.
var font = &runewidth.Condition{}

// Ellipsis replaces what is cut off.
const Ellipsis = "…"

// Number formats a count with commas between the thousands. The largest number means any count that is too large.
func Number(x uint64) string {
	if x == math.MaxUint64 {
		return "> 1.8e19"
	}
	digits := strconv.FormatUint(x, 10)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// Count formats a number of things: 1 node, 1,716 nodes.
func Count(x uint64, one, many string) string {
	if x == 1 {
		return "1 " + one
	}
	return Number(x) + " " + many
}

// Value formats a value of an agreement. A nil value is a dash; an empty one is a pair of quotes.
func Value(v []byte) string {
	switch {
	case v == nil:
		return "–"
	case len(v) == 0:
		return `""`
	}
	return parley.Printable(v)
}

// Fold wraps each line of the text to the width, at spaces if there are any. Continuation lines have the indentation
// of their line.
func Fold(s string, width int) string {
	var out []string
	for _, line := range strings.Split(s, "\n") {
		out = append(out, Lines(line, width)...)
	}
	return strings.Join(out, "\n")
}

// Lines wraps one line.
func Lines(line string, width int) []string {
	body := strings.TrimLeft(line, " ")
	indent := min(len(line)-len(body), max(width/2, 0))
	room := max(width-indent, 1)
	margin := line[:indent]
	var out []string
	rest := ""
	flush := func() {
		out = append(out, strings.TrimRight(margin+rest, " "))
		rest = ""
	}
	for _, word := range strings.Fields(body) {
		if rest != "" && Width(rest)+1+Width(word) > room {
			flush()
		}
		if rest != "" {
			rest += " "
		}
		rest += word
		for Width(rest) > room {
			head := headOf(rest, room)
			word = rest[len(head):]
			rest = head
			flush()
			rest = word
		}
	}
	if rest != "" || len(out) == 0 {
		flush()
	}
	return out
}

// Width returns the width of a text on a terminal, without color sequences.
func Width(s string) (sum int) {
	for s != "" {
		before, after, coloured := strings.Cut(s, "\x1b[")
		for _, r := range before {
			sum += font.RuneWidth(r)
		}
		if s = after; coloured {
			_, s, _ = strings.Cut(after, "m")
		}
	}
	return sum
}

// headOf returns the longest prefix of s that fits, but at least one character.
func headOf(s string, width int) string {
	end := 0
	for end < len(s) {
		_, size := utf8.DecodeRuneInString(s[end:])
		if end > 0 && Width(s[:end+size]) > width {
			break
		}
		end += size
	}
	return s[:end]
}

// Cut shortens a text that is too wide at its end, and marks that with an ellipsis.
func Cut(s string, width int) string {
	if Width(s) <= width {
		return s
	}
	if width <= 1 {
		return Ellipsis
	}
	return headOf(s, width-1) + Ellipsis
}

// CutFront shortens a text that is too wide at its beginning.
func CutFront(s string, width int) string {
	if Width(s) <= width {
		return s
	}
	for Width(s) > width-1 && s != "" {
		_, size := utf8.DecodeRuneInString(s)
		s = s[size:]
	}
	return Ellipsis + s
}

// Pad pads a text with blanks to the width.
func Pad(s string, width int) string { return s + strings.Repeat(" ", max(width-Width(s), 0)) }

// And joins words in a sentence: a, b and c.
func And(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}
