package cli

import (
	"slices"
	"strings"
)

// nearest says which names are near to one that there is not, and else which there are.
func nearest(name string, names []string) string {
	near := slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return !strings.HasPrefix(n, name) && distance(name, n) > max(2, len(name)/4)
	})
	if len(near) > 0 && name != "" {
		slices.SortStableFunc(near, func(a, b string) int { return distance(name, a) - distance(name, b) })
		return "near to it: " + strings.Join(near[:min(len(near), 3)], ", ")
	}
	return "allowed are " + strings.Join(names, ", ")
}

// distance is how many bytes are to be put in, taken out or changed to make one text the
// other. Texts longer than names are as far apart as they are long.
func distance(a, b string) int {
	const longest = 64
	if len(a) > longest || len(b) > longest {
		return max(len(a), len(b))
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
