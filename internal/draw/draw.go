// Package draw turns runs into what the command line shows: tables of messages,
// information trees, decisions and verdicts as text, and space-time diagrams and
// trees as SVG.
//
// Everything is a pure function from data to text: nothing looks at a terminal,
// a clock or the environment, and the same data give the same bytes. The width
// is a parameter, in columns of a fixed-width font, and no line is wider. What
// is too big to be shown whole is folded, collapsed or counted, never refused.
package draw

import (
	"slices"
	"strconv"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"parley"
)

// The library for tables takes the width of some characters from the user's
// locale. Here the same data are to give the same lines everywhere.
func init() { text.OverrideRuneWidthEastAsianWidth(false) }

// Style is what all pictures have in common.
type Style struct {
	// Width is the number of columns of a line of text; 80 if 0, and never
	// less than 40. SVG has a width of its own.
	Width int
	// Name gives the full name of a process, such as P1 or p0. Paths are made of
	// the numbers in these names: 132, or 1.3.12 in a system in which a number
	// has two digits. Without Name, processes are P1 to Pn.
	Name func(parley.ID) string
	// Faulty processes are marked.
	Faulty parley.Set
	// Colour puts ANSI colours into text. SVG is always coloured.
	Colour bool
}

const (
	defaultWidth = 80
	leastWidth   = 40
	ellipsis     = "…"
	cross        = "✗"
)

func (s Style) width() int {
	if s.Width == 0 {
		return defaultWidth
	}
	return max(s.Width, leastWidth)
}

func (s Style) name(id parley.ID) string {
	if s.Name == nil {
		return "P" + strconv.Itoa(int(id)+1)
	}
	return s.Name(id)
}

// bare is the number in a name, as it stands in a path; a name without one is
// its own.
func (s Style) bare(id parley.ID) string {
	full := s.name(id)
	number := strings.TrimLeft(full, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-")
	if number == "" || strings.Trim(number, "0123456789") != "" {
		return full
	}
	return number
}

// marked is the name with a cross behind it if the process is faulty.
func (s Style) marked(id parley.ID) string {
	if s.Faulty.Has(id) {
		return s.name(id) + " " + cross
	}
	return s.name(id)
}

// dotted tells whether some bare name has more than one character, so that
// paths need dots.
func (s Style) dotted(ids []parley.ID) bool {
	return slices.ContainsFunc(ids, func(id parley.ID) bool { return len(s.bare(id)) > 1 })
}

// path writes a path as the article does, 132, or as 1.3.12.
func (s Style) path(ids []parley.ID, dotted bool) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = s.bare(id)
	}
	if dotted {
		return strings.Join(parts, ".")
	}
	return strings.Join(parts, "")
}

// list names processes, which are given in order: P2 P3 P4, and four or more in
// a row as P2 … P7.
func (s Style) list(ids []parley.ID) string {
	var parts []string
	for i := 0; i < len(ids); {
		j := i + 1
		for j < len(ids) && ids[j] == ids[j-1]+1 {
			j++
		}
		if j-i > 3 {
			parts = append(parts, s.name(ids[i])+" "+ellipsis+" "+s.name(ids[j-1]))
			i = j
		} else {
			parts = append(parts, s.name(ids[i]))
			i++
		}
	}
	return strings.Join(parts, " ")
}

// The colours of text, as ANSI sequences.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// paint colours a text that stays within one line.
func (s Style) paint(colour, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}
