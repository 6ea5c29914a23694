package demo

import (
	"os"
	"path/filepath"
	"testing"
)

// What is printed to be called is called as the shell can.
func TestItself(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if got := itself(); got != "go run ./cmd/parley" {
		t.Error(got)
	}
	if err := os.WriteFile(filepath.Join(dir, "parley"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := itself(); got != "parley" {
		t.Error(got)
	}
}
