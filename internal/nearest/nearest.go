// Package nearest suggests existing names for one that does not exist.
package nearest

import (
	"cmp"
	"slices"
	"strings"
)

// Names returns the names that resemble a nonexistent name, or otherwise all names, for use in an error.
func Names(name string, names []string) string {
	const longest, shown = 64, 32
	near := make(map[string]int)
	for _, n := range names {
		if len(name) > longest || name == "" {
			break
		}
		by := Distance(name, n)
		if strings.HasSuffix(n, "."+name) || strings.HasPrefix(n, name) {
			by = 1
		}
		if by <= max(2, len(name)/4) {
			near[n] = by
		}
	}
	list := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return near[n] == 0 })
	if len(list) == 0 {
		if len(names) > shown {
			return "there are " + strings.Join(names[:shown], ", ") + " and others"
		}
		return "there are " + strings.Join(names, ", ")
	}
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(near[a], near[b]) })
	return "near to it: " + strings.Join(list[:min(3, len(list))], ", ")
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
