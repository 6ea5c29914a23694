package lists

import (
	"maps"
	"slices"
	"strconv"
	"testing"
)

// Of keeps the order of a list, and returns nil for an empty list.
func TestOf(t *testing.T) {
	if got := Of([]int{3, 1, 2}, strconv.Itoa); !slices.Equal(got, []string{"3", "1", "2"}) {
		t.Errorf("got %q", got)
	}
	if got := Each(slices.Values([]int{3, 1}), strconv.Itoa); !slices.Equal(got, []string{"3", "1"}) {
		t.Errorf("got %q", got)
	}
	if Of(nil, strconv.Itoa) != nil || Each(maps.Keys(map[int]bool{}), strconv.Itoa) != nil {
		t.Error("what is made of nothing is not nil")
	}
}
