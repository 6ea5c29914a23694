package conform

import "testing"

// Two processes agree on the order if they deliver what both deliver in the same order. No run of the machines has a
// disagreement, so this test makes one.
func TestTotallyOrdered(t *testing.T) {
	for _, c := range []struct {
		a, b, c []string
		want    bool
	}{
		{nil, nil, nil, true},
		{[]string{"1", "2", "3"}, []string{"1", "3"}, []string{"2", "3"}, true},
		{[]string{"1", "2"}, []string{"2", "3"}, []string{"3", "1"}, true}, // pairwise, with a cycle
		{[]string{"1", "2"}, []string{"2", "1"}, nil, false},
		{[]string{"1", "2", "3"}, []string{"2"}, []string{"3", "4", "1"}, false},
	} {
		if got := totallyOrdered(map[string][]string{"a": c.a, "b": c.b, "c": c.c}); got != c.want {
			t.Errorf("%v %v %v: %t", c.a, c.b, c.c, got)
		}
	}
}
