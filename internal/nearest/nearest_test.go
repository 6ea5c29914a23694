package nearest_test

import (
	"strings"
	"testing"

	"parley/internal/nearest"
)

// TestNames checks the suggestions for a nonexistent name, and the list of names if none resembles it.
func TestNames(t *testing.T) {
	all := []string{"agreement", "validity", "termination"}
	many := strings.Fields(strings.Repeat("x ", 40))
	for _, c := range []struct {
		name  string
		names []string
		want  string
	}{
		{"agremeent", all, "near to it: agreement"}, {"val", all, "near to it: validity"},
		{"terminatoin", all, "near to it: termination"}, {"", all, "there are agreement, validity, termination"},
		{"speed", all, "there are agreement, validity, termination"},
		{strings.Repeat("agreement", 9), all, "there are agreement, validity, termination"},
		{"long", many, "there are " + strings.Join(many[:32], ", ") + " and others"},
	} {
		if got := nearest.Names(c.name, c.names); got != c.want {
			t.Errorf("%q: %s, and not %s", c.name, got, c.want)
		}
	}
}
