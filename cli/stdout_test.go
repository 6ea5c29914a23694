package cli

import (
	"bytes"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/catalog"
	"parley/cli/console"
)

// full is a file on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "report.txt", Err: syscall.ENOSPC}
}

// A command whose output can not be written ends with status 3 and the reason, also one that does
// not look at the error of each write: its input was good, and its report is not there.
func TestOutputIsFull(t *testing.T) {
	certs := filepath.Join(t.TempDir(), "certs")
	var none bytes.Buffer
	if status := Run(nil, []string{"cert", "init", "--cluster", "bank", "--dir", certs}, &none, &none); status != console.Fine {
		t.Fatalf("status %d: %s", status, &none)
	}
	for _, args := range []string{"list", "bounds -n 4 -m 1", "run om", "cert show --dir " + certs} {
		var stderr bytes.Buffer
		status := Run(catalog.All(), strings.Fields(args), full{}, &stderr)
		if want := "parley: write report.txt: no space left on device\n"; status != console.Unfinished || stderr.String() != want {
			t.Errorf("%s: got status %d, %q; want %d, %q", args, status, &stderr, console.Unfinished, want)
		}
	}
}
