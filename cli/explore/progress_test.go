package explore

import (
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"parley/cli/console"
	"parley/explore"
)

// The progress of a search is one line, never wider than the terminal.
func TestProgressLine(t *testing.T) {
	p := explore.Progress{States: 1_234_567, Depth: 14, Frontier: 33_000, Took: 2 * time.Second}
	want := "1,234,567 states, 617,283 per second, depth 14, 33,000 waiting, 120 MiB"
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

// A pipe gets the progress of a search too: at first immediately, and then less and less often; not with --json.
func TestExploreProgressToPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	quiet, _ := searchProgress(&console.App{Err: w, JSON: true}, 0)
	quiet(explore.Progress{States: 5, Took: time.Second}) // a program expects errors alone
	show, clear := searchProgress(&console.App{Err: w}, 0)
	for half := range 120 {
		show(explore.Progress{States: 4, Outcomes: 98_304, Took: time.Duration(half+1) * time.Second / 2})
	}
	clear()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) != 7 || !strings.HasPrefix(lines[0], "4 states, 98,304 outcomes of steps, 8 per second, ") {
		t.Errorf("got %d lines, want 7 with what was computed:\n%s", len(lines), text)
	}
}
