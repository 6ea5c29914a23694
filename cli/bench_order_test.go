package cli_test

import (
	"os"
	"strings"
	"testing"
)

// Flags of "parley bench order" may have one dash; values are left as they are. What has no
// effect, or can not be, is refused, and names the flag to change.
func TestBenchOrderFlags(t *testing.T) {
	for line, want := range map[string]string{ // order: each by itself
		"--level byzantine --nodes 4 --round -5s":  "-5s",
		"-level byzantine -nodes 4 -dur 0s":        "--dur",
		"--round 50ms":                             "--round",
		"--level byzantine --nodes 4 -m 2":         "-m",
		"--level byzantine --nodes 4 -m=2":         "-m",
		"--level byzantine --nodes 0":              "--nodes",
		"-sizes=1":                                 "--sizes",
		"--nodes=4 --silent=1 --dur=100ms -tls=on": "--silent",
	} {
		_, stderr, status := run(append([]string{"bench", "order"}, strings.Fields(line)...)...)
		if status != 2 || !strings.Contains(stderr, want) || strings.Contains(stderr, "--5s") {
			t.Errorf("%s: status %d, %s", line, status, stderr)
		}
	}
}

// Nothing is left of a run that was durable.
func TestBenchOrderLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if _, stderr, status := run("bench", "order", "--dur", "50ms", "--phases", "one", "--dir", dir); status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
