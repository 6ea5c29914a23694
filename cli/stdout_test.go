package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/catalog"
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
	if status := Run(nil, []string{"cert", "init", "--cluster", "bank", "--dir", certs}, &none, &none); status != fine {
		t.Fatalf("status %d: %s", status, &none)
	}
	for _, args := range []string{"list", "bounds -n 4 -m 1", "run om", "cert show --dir " + certs} {
		var stderr bytes.Buffer
		status := Run(catalog.All(), strings.Fields(args), full{}, &stderr)
		if want := "parley: write report.txt: no space left on device\n"; status != unfinished || stderr.String() != want {
			t.Errorf("%s: got status %d, %q; want %d, %q", args, status, &stderr, unfinished, want)
		}
	}
}

// late fails at its second write alone.
type late struct {
	bytes.Buffer
	writes int
}

func (l *late) Write(b []byte) (int, error) {
	if l.writes++; l.writes == 2 {
		return 0, syscall.ENOSPC
	}
	return l.Buffer.Write(b)
}

// After an output has failed nothing more is written: the gap would not be seen.
func TestOutputWithoutGap(t *testing.T) {
	var to late
	out := &output{to: &to}
	for _, text := range []string{"a", "b", "c"} {
		_, _ = out.Write([]byte(text))
	}
	if !errors.Is(out.failed(), syscall.ENOSPC) || to.String() != "a" {
		t.Errorf("got %q and %v", to.String(), out.failed())
	}
}
