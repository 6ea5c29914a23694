package draw

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"

	"parley"
)

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
		out = append(out, fold(line, width)...)
	}
	return strings.Join(out, "\n")
}

// fold wraps one line.
func fold(line string, width int) []string {
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
		if rest != "" && columns(rest)+1+columns(word) > room {
			flush()
		}
		if rest != "" {
			rest += " "
		}
		rest += word
		for columns(rest) > room {
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

// columns is the width of a text on a terminal, colours not counted.
func columns(s string) int { return text.StringWidthWithoutEscSequences(s) }

// headOf returns the longest beginning of s that fits, at least one character.
func headOf(s string, width int) string {
	end := 0
	for end < len(s) {
		_, size := utf8.DecodeRuneInString(s[end:])
		if end > 0 && columns(s[:end+size]) > width {
			break
		}
		end += size
	}
	return s[:end]
}

// cut shortens a text that is too wide at its end, and says so.
func cut(s string, width int) string {
	if columns(s) <= width {
		return s
	}
	if width <= 1 {
		return ellipsis
	}
	return headOf(s, width-1) + ellipsis
}

// cutFront shortens a text that is too wide at its beginning.
func cutFront(s string, width int) string {
	if columns(s) <= width {
		return s
	}
	for columns(s) > width-1 && s != "" {
		_, size := utf8.DecodeRuneInString(s)
		s = s[size:]
	}
	return ellipsis + s
}

// pad fills a text up to the width.
func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(width-columns(s), 0))
}

// shortest keeps long values out of narrow places.
func (s Style) value(v []byte) string { return cut(Value(v), max(8, s.width()/5)) }
