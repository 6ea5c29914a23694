package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"parley/catalog"
	"parley/cli"
	"parley/internal/golden"
)

// TestMain runs the command line instead of the tests when a command under test starts this program as a node or
// process.
func TestMain(m *testing.M) {
	if os.Getenv("PARLEY_NODE") != "" && len(os.Args) > 1 && slices.Contains([]string{"node", "member", "list", "bench"}, os.Args[1]) {
		cli.Main(catalog.All())
	}
	if os.Getenv(programVariable) != "" && len(os.Args) == 2 {
		takePart(os.Args[1])
		return
	}
	if !strings.HasPrefix(filepath.Base(os.Args[0]), "parley") { // the tests, and not a command of a script
		golden.Environment()
	}
	testscript.Main(m, map[string]func(){"parley": func() { cli.Main(catalog.All()) }})
}

// The scripts contain command lines with their output.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			root, err := filepath.Abs("..")
			e.Setenv("ROOT", root)
			return err
		},
	})
}

// run runs one command line.
func run(args ...string) (stdout, stderr string, status int) {
	var out, err bytes.Buffer
	status = cli.Run(catalog.All(), args, &out, &err)
	return out.String(), err.String(), status
}

// A trace with a missing or changed line is refused, and the error names the line.
func TestChangedTrace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "run.jsonl")
	if _, stderr, status := run("run", "om", "--trace", file); status != 0 {
		t.Fatal(stderr)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(b), "\n")
	n := len(lines)
	changed := slices.Clone(lines)
	for i := range changed {
		changed[i] = strings.Replace(changed[i], `"body":"MQ=="`, `"body":"MA=="`, 1)
	}
	for name, test := range map[string]struct {
		lines []string
		want  string
	}{
		"a line is missing":  {slices.Concat(lines[:4], lines[5:]), ":5: event 5 follows event 3"},
		"a value is changed": {changed, "the trace was changed"},
		"the end is missing": {lines[:n-2], "its last line is missing: record it again"},
		"it goes on":         {slices.Concat(lines[:n-1], []string{"{}\n"}), "the trace continues after its end"},
		"another protocol": {
			append([]string{strings.ReplaceAll(lines[0], `"om"`, `"amo"`)}, lines[1:]...), "the header was changed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			changed := filepath.Join(t.TempDir(), "changed.jsonl")
			if err := os.WriteFile(changed, []byte(strings.Join(test.lines, "")), 0o600); err != nil {
				t.Fatal(err)
			}
			_, stderr, status := run("trace", "show", changed)
			if status != 2 || !strings.Contains(stderr, test.want) || !strings.HasPrefix(stderr, "parley: "+changed) {
				t.Errorf("status %d, %s; want 2 and %q", status, stderr, test.want)
			}
		})
	}
}
