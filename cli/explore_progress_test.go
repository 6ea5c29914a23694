package cli

import (
	"testing"
	"time"

	"parley/explore"
)

// How far a search has come is one line, which is never wider than the terminal.
func TestProgressLine(t *testing.T) {
	p := explore.Progress{States: 1_234_567, Depth: 14, Frontier: 33_000, Took: 2 * time.Second}
	want := "1,234,567 states, 617,283 a second, 14 deep, 33,000 wait, 120 MiB"
	if got := progressLine(p, 120<<20, 100); got != want {
		t.Errorf("%q, and %q was expected", got, want)
	}
	if got := progressLine(p, 120<<20, 20); got != want[:19] {
		t.Errorf("%q is not what fits into 20 columns", got)
	}
	if inUse() < 1<<20 {
		t.Errorf("%d bytes are in use", inUse())
	}
}
