package nearest_test

import (
	"strings"
	"testing"

	"parley/internal/nearest"
)

// An error about a name suggests similar names, or else lists those that are allowed.
func TestNames(t *testing.T) {
	all := []string{"agreement", "validity", "termination"}
	many := strings.Fields(strings.Repeat("x ", 40))
	for _, c := range []struct {
		name  string
		names []string
		want  string
	}{
		{"agremeent", all, "did you mean agreement?"}, {"val", all, "did you mean validity?"},
		{"terminatoin", all, "did you mean termination?"}, {"", all, "allowed are agreement, validity, termination"},
		{"speed", all, "allowed are agreement, validity, termination"},
		{"VALIDITY", all, "did you mean validity?"}, {"eg", []string{"eig", "a", "leg"}, "did you mean eig or leg?"},
		{strings.Repeat("agreement", 9), all, "allowed are agreement, validity, termination"},
		{"long", many, "allowed are " + strings.Join(many[:32], ", ") + ", and others"},
	} {
		if got := nearest.Names(c.name, c.names); got != c.want {
			t.Errorf("%q: %s, and not %s", c.name, got, c.want)
		}
	}
}
