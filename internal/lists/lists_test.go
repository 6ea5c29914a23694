package lists

import (
	"maps"
	"slices"
	"strconv"
	"testing"
)

// A list keeps its order, and what is made of nothing is nil.
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
