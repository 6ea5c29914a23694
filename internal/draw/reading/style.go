// Package reading derives from a trace what pictures and text show: which process sent what to which process in
// which round, which processes lied, the outcome of each process, and each event in words. It also chooses which
// part of a large information tree is shown. Packages that make pictures and text read traces only through this
// package.
package reading

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"parley"
	"parley/internal/draw/prose"
	"parley/trace"
)

// Style is what all pictures have in common.
type Style struct {
	// Width is the number of columns of a line of text; 80 if 0, and at least 40. SVG has a width of its own.
	Width int
	// Name returns the full name of a process, such as P1 or p0. Paths consist of the numbers in these names: 132, or
	// 1.3.12 if a number has two digits. If Name is nil, processes are P1 to Pn.
	Name func(parley.ID) string
	// Faulty processes are marked.
	Faulty parley.Set
	// Honest is what the faulty processes would have sent if they were honest, as far as that is known. Anything else
	// that they sent is marked as a lie.
	Honest []trace.Event
	// Color adds ANSI colors to text. SVG always has colors.
	Color bool
}

// Cross marks faulty processes.
const Cross = "✗"

// Silence is shown where a message was due and none arrived.
const Silence = "(silent)"

const (
	defaultWidth = 80
	leastWidth   = 40
)

// Columns returns the width of a line of text.
func (s Style) Columns() int {
	return max(cmp.Or(s.Width, defaultWidth), leastWidth)
}

// Called returns the full name of a process.
func (s Style) Called(id parley.ID) string {
	if s.Name == nil {
		return "P" + strconv.Itoa(int(id)+1)
	}
	return s.Name(id)
}

// Bare returns the number in a name, as used in paths. A name without a number is returned unchanged.
func (s Style) Bare(id parley.ID) string {
	full := s.Called(id)
	number := strings.TrimLeft(full, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_-")
	if number == "" || strings.Trim(number, "0123456789") != "" {
		return full
	}
	return number
}

// Marked returns the name, with a cross after it if the process is faulty.
func (s Style) Marked(id parley.ID) string {
	if s.Faulty.Has(id) {
		return s.Called(id) + " " + Cross
	}
	return s.Called(id)
}

// Dotted reports whether a bare name has more than one character, so that paths need dots.
func (s Style) Dotted(ids []parley.ID) bool {
	return slices.ContainsFunc(ids, func(id parley.ID) bool { return len(s.Bare(id)) > 1 })
}

// Path formats a path as the article does, 132, or as 1.3.12.
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

// List lists processes, which must be in order: P2 P3 P4, and four or more consecutive ones as P2 … P7.
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

// Value formats a value, shortened for narrow places.
func (s Style) Value(v []byte) string { return prose.Cut(prose.Value(v), max(8, s.Columns()/5)) }
