// Package reading tells what a trace says: who told whom what in which round, who lied,
// what became of each process, and each event in words. It also chooses what of a large
// information tree is shown. Pictures and text show what is read here, and read nothing
// by themselves.
package reading

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/internal/draw/prose"
)

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
	// Color puts ANSI colours into text. SVG is always coloured.
	Color bool
}

// Cross marks what is faulty.
const Cross = "✗"

// Silence stands where nothing came and something was due.
const Silence = "(silent)"

const (
	defaultWidth = 80
	leastWidth   = 40
)

// Columns is the width of a line of text.
func (s Style) Columns() int {
	return max(cmp.Or(s.Width, defaultWidth), leastWidth)
}

// Called is the full name of a process.
func (s Style) Called(id parley.ID) string {
	if s.Name == nil {
		return "P" + strconv.Itoa(int(id)+1)
	}
	return s.Name(id)
}

// Bare is the number in a name, as it stands in a path; a name without one is
// its own.
func (s Style) Bare(id parley.ID) string {
	full := s.Called(id)
	number := strings.TrimLeft(full, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-")
	if number == "" || strings.Trim(number, "0123456789") != "" {
		return full
	}
	return number
}

// Marked is the name with a cross behind it if the process is faulty.
func (s Style) Marked(id parley.ID) string {
	if s.Faulty.Has(id) {
		return s.Called(id) + " " + Cross
	}
	return s.Called(id)
}

// Dotted tells whether some bare name has more than one character, so that
// paths need dots.
func (s Style) Dotted(ids []parley.ID) bool {
	return slices.ContainsFunc(ids, func(id parley.ID) bool { return len(s.Bare(id)) > 1 })
}

// Path writes a path as the article does, 132, or as 1.3.12.
func (s Style) Path(ids []parley.ID, dotted bool) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = s.Bare(id)
	}
	if dotted {
		return strings.Join(parts, ".")
	}
	return strings.Join(parts, "")
}

// List names processes, which are given in order: P2 P3 P4, and four or more in
// a row as P2 … P7.
func (s Style) List(ids []parley.ID) string {
	var parts []string
	for i := 0; i < len(ids); {
		j := i + 1
		for j < len(ids) && ids[j] == ids[j-1]+1 {
			j++
		}
		if j-i > 3 {
			parts = append(parts, s.Called(ids[i])+" "+prose.Ellipsis+" "+s.Called(ids[j-1]))
			i = j
		} else {
			parts = append(parts, s.Called(ids[i]))
			i++
		}
	}
	return strings.Join(parts, " ")
}

// Value keeps long values out of narrow places.
func (s Style) Value(v []byte) string { return prose.Cut(prose.Value(v), max(8, s.Columns()/5)) }
