package prose_test

import (
	"math"
	"strings"
	"testing"

	"parley/internal/draw/prose"
)

func TestNumber(t *testing.T) {
	for x, want := range map[uint64]string{
		0: "0", 7: "7", 999: "999", 1000: "1,000", 1716: "1,716", 123456: "123,456", 13366080: "13,366,080",
		math.MaxUint64 - 1: "18,446,744,073,709,551,614", math.MaxUint64: "> 1.8e19",
	} {
		if got := prose.Number(x); got != want {
			t.Errorf("Number(%d) = %q, want %q", x, got, want)
		}
	}
	for x, want := range map[uint64]string{0: "0 nodes", 1: "1 node", 1716: "1,716 nodes"} {
		if got := prose.Count(x, "node", "nodes"); got != want {
			t.Errorf("Count(%d) = %q, want %q", x, got, want)
		}
	}
}

func TestValue(t *testing.T) {
	for _, c := range []struct {
		v    []byte
		want string
	}{{nil, "–"}, {[]byte{}, `""`}, {[]byte("1"), "1"}, {[]byte{0, 255}, "0x00ff"}} {
		if got := prose.Value(c.v); got != c.want {
			t.Errorf("Value(%v) = %q, want %q", c.v, got, c.want)
		}
	}
}

func TestFold(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"", 10, ""},
		{"all correct lieutenants decide alike", 12, "all correct\nlieutenants\ndecide alike"},
		{"one\ntwo three", 80, "one\ntwo three"},
		{"  a clause that goes on", 12, "  a clause\n  that goes\n  on"},
		{"0123456789abcdef", 6, "012345\n6789ab\ncdef"},
		{"x 0123456789", 4, "x\n0123\n4567\n89"},
		{"n ≥ m+2 … für", 7, "n ≥ m+2\n… für"},
	} {
		if got := prose.Fold(c.text, c.width); got != c.want {
			t.Errorf("Fold(%q, %d) = %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

// Folding drops nothing but blanks, at any width.
func TestFoldLosesNothing(t *testing.T) {
	text := strings.Repeat("n > 3m: m+1 rounds of gathering suffice, and aVeryLongWordWithoutAnyBlank… does too ", 3)
	letters := func(s string) string { return strings.Join(strings.Fields(s), "") }
	for width := 1; width < 120; width++ {
		folded := prose.Fold(text, width)
		if letters(folded) != letters(text) {
			t.Fatalf("width %d: %q", width, folded)
		}
		for _, line := range strings.Split(folded, "\n") {
			if n := len([]rune(line)); n > width {
				t.Fatalf("width %d: a line of %d: %q", width, n, line)
			}
		}
	}
}
