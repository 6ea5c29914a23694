package cli

import (
	"fmt"
	"strconv"

	"parley"
)

// names is how processes are called: P1..Pn as in the article, or p0..pn-1 as
// in the lecture.
type names string

const (
	article names = "article"
	lecture names = "lecture"
)

// Set and String and Type make names a flag.
func (k *names) Set(text string) error {
	if names(text) != article && names(text) != lecture {
		return fmt.Errorf("allowed are %s (P1..Pn) and %s (p0..pn-1)", article, lecture)
	}
	*k = names(text)
	return nil
}

func (k *names) String() string { return string(*k) }

// Type is what the help calls the value.
func (k *names) Type() string { return "article|lecture" }

func (k names) first() int {
	if k == article {
		return 1
	}
	return 0
}

// full is the name of a process: P1 or p0.
func (k names) full(id parley.ID) string {
	if k == article {
		return "P" + k.bare(id)
	}
	return "p" + k.bare(id)
}

// bare is the number in the name, as it stands in a path.
func (k names) bare(id parley.ID) string { return strconv.Itoa(int(id) + k.first()) }

// parse reads the name of one of n processes, whole or as a bare number.
func (k names) parse(text string, n int) (parley.ID, error) {
	digits := text
	if len(text) > 1 && text[0] == k.full(0)[0] {
		digits = text[1:]
	}
	i, err := strconv.Atoi(digits)
	if err != nil || strconv.Itoa(i) != digits || i < k.first() || i-k.first() >= n {
		return 0, fmt.Errorf("%q is no process: allowed are %s to %s", text, k.full(0), k.full(parley.ID(n-1)))
	}
	return parley.ID(i - k.first()), nil
}
