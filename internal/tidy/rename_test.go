package tidy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The module can get another path, as by make rename: in a renamed copy every import can be found, including those of
// tests, and none has the old path. make check tests that the copy compiles, which takes a while.
func TestRename(t *testing.T) {
	m := loaded(t)
	root := t.TempDir()
	for _, s := range m.files {
		name := filepath.Join(root, filepath.FromSlash(s.path))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, s.text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const to = "example.org/renamed/agree"
	run := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir = filepath.Join(root, dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	run("tools", "run", "./rename", "-root", "..", to)
	renamed, err := load(root)
	if err != nil {
		t.Fatal(err)
	}
	if renamed.path != to {
		t.Errorf("go.mod says %q", renamed.path)
	}
	for i, s := range renamed.files {
		if s.path != m.files[i].path {
			t.Fatalf("%s became %s", m.files[i].path, s.path)
		}
		if old := []byte("\n\t\"" + m.path + "\"\n"); bytes.Contains(s.text, old) {
			t.Errorf("%s still imports %s", s.path, m.path)
		}
	}
	run(".", "list", "-deps", "-test", "./...")
}
