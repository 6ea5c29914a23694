package live

import (
	"os"
	"path/filepath"
	"testing"

	"parley/cluster/disk"
)

// The folder of a lab that was killed is removed, and that of a lab that runs is not; nor is anything else.
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
	killed, runs := make("parley-lab-1", lockName), make("parley-lab-2", lockName)
	other, fresh := make("parley-demo-1", lockName), make("parley-lab-3", "certs")
	lock, err := disk.System{}.Lock(filepath.Join(runs, lockName))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	sweep(temporary)
	for dir, want := range map[string]bool{killed: false, runs: true, other: true, fresh: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", filepath.Base(dir), err == nil, want)
		}
	}
}
