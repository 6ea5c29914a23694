package exercise

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"parley/cli/console"
)

// These variables are set in the environment of the programs that these tests start.
const (
	variable = "PARLEY_TEST_PROGRAM"
	address  = "PARLEY_TEST_ADDRESS"
)

// TestMain runs a program instead of the tests where a test starts this binary as one.
func TestMain(m *testing.M) {
	switch os.Getenv(variable) {
	case "":
		os.Exit(m.Run())
	case "ends":
		os.Exit(0)
	case "fails":
		os.Exit(3)
	case "has no machine":
		cmd := gradeCommand(&console.App{Out: os.Stdout, Err: os.Stderr})
		cmd.SetArgs(os.Args[3:])
		if cmd.Execute() != nil {
			os.Exit(console.Usage)
		}
	case "checks":
		_ = os.Setenv(variable, "waits")
		_ = gradeWith(context.Background(), "check", &console.App{Out: os.Stdout, Err: os.Stderr}, os.Args[0], os.DevNull, nil)
	case "waits": // it lives as long as a connection, which the test watches
		if c, err := net.Dial("tcp", os.Getenv(address)); err == nil {
			_, _ = c.Read(make([]byte, 1))
		}
	}
}

// A program that does not come to the end of the grading has no points, whatever its status.
func TestProgramEndsByItself(t *testing.T) {
	const before = "check: the program ended by itself before it was graded, with exit status "
	for way, want := range map[string]error{
		"ends":           console.EndWith(console.Violated, errors.New(before+"0: the machine must not end the program")),
		"fails":          console.EndWith(console.Violated, errors.New(before+"3: the machine must not end the program")),
		"has no machine": console.ExitError(console.Usage),
	} {
		t.Setenv(variable, way)
		var out bytes.Buffer
		got := gradeWith(t.Context(), "check", &console.App{Out: &out, Err: &out}, os.Args[0],
			filepath.Join(t.TempDir(), "graded"), []string{"om"})
		if got == nil || got.Error() != want.Error() || status(got) != status(want) {
			t.Errorf("%s: got  %v\nwant %v; %s", way, got, want, out.String())
		}
	}
}

// status returns the exit status of an error.
func status(err error) int {
	if ended, ok := errors.AsType[*console.EndedError](err); ok {
		return ended.Status
	}
	code, _ := errors.AsType[console.ExitError](err)
	return int(code)
}
