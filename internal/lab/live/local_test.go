package live

import (
	"io"
	"os"
	"path/filepath"
	"testing"
)

// The folder of a lab that was killed is removed, and that of a lab that runs, or is about to lock it, is not; nor is
// anything else.
func TestSweep(t *testing.T) {
	temporary := t.TempDir()
	make := func(name, file string) string {
		dir := filepath.Join(temporary, name)
		if err := os.MkdirAll(filepath.Join(dir, "node1"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	own := func(dir string) io.Closer {
		lock, err := claim(dir)
		if err != nil {
			t.Fatal(err)
		}
		return lock
	}
	killed, runs, other := make("parley-lab-1", "certs"), make("parley-lab-2", "certs"), make("parley-demo-1", "certs")
	fresh, starts := make("parley-lab-3", "certs"), make("parley-lab-4", lockName)
	for _, dir := range []string{killed, other} {
		if err := own(dir).Close(); err != nil {
			t.Fatal(err)
		}
	}
	defer own(runs).Close()
	sweep(temporary)
	for dir, want := range map[string]bool{killed: false, runs: true, other: true, fresh: true, starts: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", filepath.Base(dir), err == nil, want)
		}
	}
}
