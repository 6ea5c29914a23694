// Package prose is text in a font of fixed width: numbers and lists in words, lines that
// are folded or cut. The same text has the same width everywhere.
package prose

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"parley"
)

// font says how wide characters are. It is not that of the user's locale, which the library
// would take: the same text is to give the same lines everywhere.
var font = &runewidth.Condition{}

// Ellipsis stands for what is cut off.
const Ellipsis = "…"

// Number writes a count with commas between the thousands. The largest number
// stands for all that are too large to count.
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

// Count writes a number of things: 1 node, 1,716 nodes.
func Count(x uint64, one, many string) string {
	if x == 1 {
		return "1 " + one
	}
	return Number(x) + " " + many
}

// Value writes a value of agreement. There is none if v is nil; an empty one is
// written with quotes.
func Value(v []byte) string {
	switch {
	case v == nil:
		return "–"
	case len(v) == 0:
		return `""`
	}
	return parley.Printable(v)
}

// Fold wraps each line of the text to the width, at spaces where there are any.
// A line that begins with spaces goes on with as many.
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

// Width is the width of a text on a terminal, colours not counted.
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

// headOf returns the longest beginning of s that fits, at least one character.
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

// Cut shortens a text that is too wide at its end, and says so.
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

// Pad fills a text up to the width.
func Pad(s string, width int) string { return s + strings.Repeat(" ", max(width-Width(s), 0)) }

// And joins parts of a sentence: a, b and c.
func And(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}
