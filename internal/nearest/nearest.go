// Package nearest suggests names that are similar to a misspelt name.
package nearest

import (
	"cmp"
	"slices"
	"strings"
)

// Names completes an error about an unknown name: it asks for up to three similar names, or lists what is allowed.
func Names(name string, names []string) string {
	const shown = 32
	switch list := Similar(name, names); {
	case len(list) > 0:
		return Meant(list)
	case len(names) > shown:
		return "allowed are " + strings.Join(names[:shown], ", ") + ", and others"
	}
	return "allowed are " + strings.Join(names, ", ")
}

// Meant asks whether one of some names was meant.
func Meant(list []string) string {
	last := len(list) - 1
	if last == 0 {
		return "did you mean " + list[0] + "?"
	}
	return "did you mean " + strings.Join(list[:last], ", ") + " or " + list[last] + "?"
}

// Similar returns up to three names that are close to one, the closest first. Case does not count.
func Similar(name string, names []string) []string {
	const longest = 64
	if len(name) > longest || name == "" {
		return nil
	}
	near := make(map[string]int)
	lower := strings.ToLower(name)
	for _, n := range names {
		by := 1 + Distance(lower, strings.ToLower(n))
		if strings.HasSuffix(n, "."+name) || strings.HasPrefix(n, name) {
			by = 1
		}
		if by <= max(1, len(name)/3)+1 && by <= min(len(n), len(name)) {
			near[n] = by
		}
	}
	list := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return near[n] == 0 })
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(near[a], near[b]) })
	return list[:min(3, len(list))]
}

// Distance returns how many bytes must be inserted, removed, or replaced to turn a into b. If a is far longer than b,
// it returns the length of a.
func Distance(a, b string) int {
	if len(a) > 2*len(b)+2 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
