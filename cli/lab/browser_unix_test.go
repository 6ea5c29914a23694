//go:build unix && !darwin

package lab_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// If there is a display, the browser opens a file that only the user reads. The file leads to the address, and is
// removed at the end. The address is no argument of a process.
func TestBrowser(t *testing.T) {
	dir := t.TempDir()
	seen := filepath.Join(dir, "seen")
	if err := syscall.Mkfifo(seen, 0o600); err != nil {
		t.Fatal(err)
	}
	script := "#!/bin/sh\n{ echo \"$@\"; ls -l \"$1\"; cat \"$1\"; } >" + seen + "\n"
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	t.Setenv("TMPDIR", dir)
	t.Setenv("DISPLAY", ":0")
	r := begin(t, "--listen", "127.0.0.1:0")
	b, err := os.ReadFile(seen)
	if err != nil {
		t.Fatal(err)
	}
	args, rest, _ := strings.Cut(string(b), "\n")
	if !strings.HasSuffix(args, "/lab.html") || strings.Contains(args, "token") {
		t.Errorf("the browser was called with %q", args)
	}
	if !strings.HasPrefix(rest, "-rw-------") || !strings.Contains(rest, `content="0; url=`+r.address.String()+`"`) {
		t.Errorf("the file: %s", rest)
	}
	if err := r.end(); err != nil {
		t.Errorf("it ended by %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "parley-lab-*")); err != nil || len(left) != 0 {
		t.Errorf("it left %v, %v", left, err)
	}
}

// Without a display, or without a browser, the address alone remains.
func TestNoBrowser(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("WAYLAND_DISPLAY", "")
	for display, want := range map[string]string{
		"":   "",
		":0": "parley lab: no browser was opened: open the address yourself\n",
	} {
		t.Setenv("DISPLAY", display)
		r := begin(t, "--listen", "127.0.0.1:0")
		if err := r.end(); err != nil || r.notices.String() != want {
			t.Errorf("display %q: %v, notices %q, want %q", display, err, r.notices, want)
		}
	}
}
