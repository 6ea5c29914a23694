package console

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"testing"
)

func TestPathError(t *testing.T) {
	_, missing := os.Open(t.TempDir() + "/none/x")
	if err := PathError(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want an error that matches %v", err, fs.ErrNotExist)
	}
	for want, err := range map[string]error{
		"x: no permission: check the rights of the file and its folder": &fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission},
		"x: the disk is full: free some space":                          &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC},
		`"": no such file or folder: check the name`:                    &fs.PathError{Op: "open", Err: fs.ErrNotExist},
		"something else": errors.New("something else"),
	} {
		if got := PathError(err).Error(); got != want {
			t.Errorf("%v: got %q, want %q", err, got, want)
		}
	}
}

func TestFoldError(t *testing.T) {
	const text = "parley: --crashes: a message that is longer than the terminal"
	for width, want := range map[int]string{
		0: text, 100: text, 32: "parley: --crashes: a message\n  that is longer than the\n  terminal",
	} {
		if got := FoldError(text, width); got != want {
			t.Errorf("width %d: got %q, want %q", width, got, want)
		}
	}
}
