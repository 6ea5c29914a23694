//go:build unix

package exercise

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A main.go that no exercise has is neither waited for nor read without end.
func TestStrangeMain(t *testing.T) {
	for _, c := range []struct {
		what string
		make func(file string) error
		want string
	}{
		{"a pipe", func(file string) error { return syscall.Mkfifo(file, 0o600) }, "main.go is not a regular file: check the folder"},
		{"a device", func(file string) error { return os.Symlink(os.DevNull, file) }, "main.go is not a regular file: check the folder"},
		{"a folder", func(file string) error { return os.Mkdir(file, 0o700) }, "main.go is not a regular file: check the folder"},
		{"a file without end", func(file string) error {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				return err
			}
			return os.Truncate(file, 1<<40)
		}, "main.go was changed"},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "cmd", "om", "main.go")
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := c.make(file); err != nil {
			t.Fatal(err)
		}
		if _, err := in("check", dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s", c.what, err, c.want)
		}
	}
}
