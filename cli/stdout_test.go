package cli_test

import (
	"bytes"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/catalog"
	"parley/cli"
	"parley/cli/console"
)

// unwritable is an output that cannot be written.
type unwritable struct{ why error }

func (u unwritable) Write([]byte) (int, error) {
	return 0, &fs.PathError{Op: "write", Path: "report.txt", Err: u.why}
}

// A command whose output cannot be written ends with status 3 and the reason, even if it ignores the errors of its
// writes: its input was good, but its report is lost. If the reader of its output has ended, there is no message.
func TestOutputIsFull(t *testing.T) {
	certs := filepath.Join(t.TempDir(), "certs")
	if _, stderr, status := run("cert", "init", "--cluster", "bank", "--dir", certs); status != console.Fine {
		t.Fatalf("status %d: %s", status, stderr)
	}
	for _, args := range []string{"list", "bounds -n 4 -m 1", "run om", "run om --trace -", "cert show --dir " + certs} {
		for why, want := range map[error]string{
			syscall.ENOSPC: "parley: write report.txt: no space left on device\n", syscall.EPIPE: "",
		} {
			var stderr bytes.Buffer
			status := cli.Run(catalog.All(), strings.Fields(args), unwritable{why}, &stderr)
			if status != console.Unfinished || stderr.String() != want {
				t.Errorf("%s: got status %d, %q; want %d, %q", args, status, &stderr, console.Unfinished, want)
			}
		}
	}
}

// A file that is written to the standard output is alone there: the report goes to the standard error, and two files
// for the standard output are refused.
func TestFilesToStandardOutput(t *testing.T) {
	for _, c := range []struct{ args, begins, says string }{
		{"run om --trace -", `{"parley":`, "agreement"},
		{"run om --svg -", "<svg ", "the same again"},
		{"explore eig -n 3 -m 1 --beyond-bound --trace -", `{"parley":`, "The shortest run that breaks validity"},
		{"explore eig -n 3 -m 1 --beyond-bound --svg -", "<svg ", "The shortest run that breaks validity"},
		{"explore eig -n 3 -m 1 --beyond-bound --indistinguishable --svg -", "<svg ", "case one"},
	} {
		var out, stderr bytes.Buffer
		status := cli.Run(catalog.All(), strings.Fields(c.args), &out, &stderr)
		if status > console.Violated || !strings.HasPrefix(out.String(), c.begins) || !strings.Contains(stderr.String(), c.says) ||
			strings.Contains(out.String(), c.says+":") {
			t.Errorf("%s: status %d, %.200q\n%.400s", c.args, status, &out, &stderr)
		}
	}
	for _, args := range []string{"run om --trace - --svg -", "run om --trace - --json", "explore om --svg - --json"} {
		var out, stderr bytes.Buffer
		if status := cli.Run(catalog.All(), strings.Fields(args), &out, &stderr); status != console.Usage || out.Len() > 0 ||
			!strings.Contains(stderr.String(), ": - is the standard output, which ") {
			t.Errorf("%s: status %d, %s", args, status, &stderr)
		}
	}
}
