// Package naming gives names to processes: P1 to Pn as in the article, or p0 to pn-1 as in the lecture
// (docs/explanation/sources.md).
package naming

import (
	"fmt"
	"strconv"

	"parley"
	"parley/internal/lists"
)

// Names is a naming of processes: P1..Pn as in the article, or p0..pn-1 as in the lecture.
type Names string

// The two namings of processes.
const (
	Article Names = "article"
	Lecture Names = "lecture"
)

// Set, String and Type implement a flag's value.
func (k *Names) Set(text string) error {
	if Names(text) != Article && Names(text) != Lecture {
		return fmt.Errorf("allowed are %s (P1..Pn) and %s (p0..pn-1)", Article, Lecture)
	}
	*k = Names(text)
	return nil
}

func (k *Names) String() string { return string(*k) }

// Type names the value in the help.
func (k *Names) Type() string { return "article|lecture" }

func (k Names) first() int {
	if k == Article {
		return 1
	}
	return 0
}

// Full returns the name of a process: P1 or p0.
func (k Names) Full(id parley.ID) string {
	if k == Article {
		return "P" + k.Bare(id)
	}
	return "p" + k.Bare(id)
}

// List returns the full names of processes. It is never nil.
func (k Names) List(ids parley.Set) []string {
	return append([]string{}, lists.Each(ids.All(), k.Full)...)
}

// Bare returns the number in the name, as paths show it.
func (k Names) Bare(id parley.ID) string { return strconv.Itoa(int(id) + k.first()) }

// Parse reads the name of one of n processes: a full name or a bare number.
func (k Names) Parse(text string, n int) (parley.ID, error) {
	digits := text
	if len(text) > 1 && text[0] == k.Full(0)[0] {
		digits = text[1:]
	}
	i, err := strconv.Atoi(digits)
	if err != nil || strconv.Itoa(i) != digits || i < k.first() || i-k.first() >= n {
		return 0, fmt.Errorf("%.200q is no process: allowed are %s to %s", text, k.Full(0), k.Full(parley.ID(n-1)))
	}
	return parley.ID(i - k.first()), nil
}
