// Package golden compares the output of the command line with stored files (stories). Each story shows one run of a
// protocol, from the first message to the verdict. A test with the flag -update writes the current output into the
// stories.
package golden

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"parley/catalog"
	"parley/cli"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Environment removes the variables that set flags, for tests of the command line.
func Environment() {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "PARLEY_") {
			_ = os.Unsetenv(name) // the name is valid: the system has it
		}
	}
}

// Story runs a command line and compares its output with the file.
func Story(t *testing.T, file string, args ...string) {
	t.Helper()
	Environment()
	var out, stderr bytes.Buffer
	if status := cli.Run(catalog.All(), args, &out, &stderr); status != 0 {
		t.Fatalf("status %d, %s", status, stderr.String())
	}
	Compare(t, file, out.Bytes())
}

// Updating reports whether tests rewrite their stories.
func Updating() bool { return *update }

// Compare compares a text with the file.
func Compare(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from what is printed now; -update accepts it:\n%s", file, got)
	}
}
