package cli_test

import (
	"os"
	"testing"
)

// A durable run leaves no files behind.
func TestBenchOrderLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	if _, stderr, status := run("bench", "order", "--dur", "50ms", "--phases", "one", "--dir", dir); status != 0 {
		t.Fatalf("status %d: %s", status, stderr)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
