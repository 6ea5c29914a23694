package cli_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"parley/catalog"
	"parley/cli"
	"parley/internal/golden"
)

// masks match the parts of the output that differ between demonstrations.
var masks = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`(node\d  )\d+ +127\.0\.0\.1:\d+  127\.0\.0\.1:\d+`), "${1}PID    127.0.0.1:PORT   127.0.0.1:PORT"},
	{regexp.MustCompile(`\d+\.\d (m?s)\b`), "N.N $1"},
	{regexp.MustCompile(`(?m)^(P\d [ ✗]  )[a-d1-6 \n]*?(?:end)?( ✗ killed)?$`), "${1}…$2"},
	{regexp.MustCompile(`\d+ messages`), "N messages"},
	{regexp.MustCompile(`first \d+\s+of\s+them`), "first N of them"},
}

// The demonstration prints the golden text, and every line fits the width.
func TestDemo(t *testing.T) {
	got, stderr, status := run("demo", "--once", "--width", "80")
	if status != 0 || stderr != "" {
		t.Fatalf("status %d, %s%s", status, stderr, got)
	}
	for _, line := range strings.Split(got, "\n") {
		if utf8.RuneCountInString(line) > 80 {
			t.Errorf("a line is too long: %s", line)
		}
	}
	_, rows, _ := strings.Cut(got, "\n2. ")
	at := strings.Index(rows, "P1    ")
	rows, _, _ = strings.Cut(rows[max(at, 0):], "\n\n")
	delivered := strings.Split(rows, "\n")
	if len(delivered) != 4 {
		t.Fatalf("rows of deliveries: %q in %s", delivered, got)
	}
	survivors := delivered[0][len("P1    "):]
	if n := len(strings.Fields(survivors)); n < 19 || n > 25 {
		t.Errorf("%d deliveries: %s", n, survivors)
	}
	for _, row := range delivered[1:3] {
		if !strings.HasSuffix(row, survivors) {
			t.Errorf("%q is not in the order %q", row, survivors)
		}
	}
	last := strings.TrimSuffix(strings.TrimPrefix(delivered[3], "P4 ✗  "), " ✗ killed")
	if n := len(strings.Fields(survivors)); !strings.Contains(got, fmt.Sprintf("the same %d messages", n)) {
		t.Errorf("the count is not that of the %d messages shown: %s", n, got)
	}
	if !strings.HasPrefix(survivors, last) || len(last) == len(survivors) {
		t.Errorf("the killed one delivered %q, and the others %q", last, survivors)
	}
	quotedByReadme(t, got)
	for _, m := range masks {
		got = m.what.ReplaceAllString(got, m.with)
	}
	golden.Compare(t, "testdata/demo.txt", []byte(got))
}

// quotedByReadme compares the demo's output with the lines that the README quotes from it. The number of messages varies.
func quotedByReadme(t *testing.T, output string) {
	t.Helper()
	b, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	normal := func(text string) string {
		return strings.Join(strings.Fields(regexp.MustCompile(`\d+ messages`).ReplaceAllString(text, "some messages")), " ")
	}
	_, quoted, _ := strings.Cut(string(b), "From the output:\n\n```\n")
	quoted, _, ok := strings.Cut(quoted, "\n```")
	if !ok {
		t.Fatal("the README quotes nothing from the demo")
	}
	for line := range strings.Lines(quoted) {
		if line != "...\n" && !strings.Contains(normal(output), normal(line)) {
			t.Errorf("the README quotes %q, and the demo prints %s", line, output)
		}
	}
}

// Without --once the cluster stays, the printed commands work in their order, and Ctrl-C removes everything.
func TestDemoStays(t *testing.T) {
	p := begin(t, "Ctrl-C ends the cluster and removes everything.\n", "demo")
	_, next, _ := strings.Cut(p.printed(), "in another terminal:\n")
	var commands []string
	for line := range strings.Lines(next) {
		if strings.HasPrefix(line, "  parley ") {
			commands = append(commands, strings.TrimSpace(line))
		}
	}
	if len(commands) != 4 {
		t.Fatalf("%d commands to try: %s", len(commands), next)
	}
	_, dir, _ := strings.Cut(commands[0], "--dir ")
	var back *process
	for _, command := range commands {
		if strings.Contains(command, " node ") { // it does not end, and rejoins only after a while
			back = begin(t, "metrics are served at ", words(command)[1:]...)
			continue
		}
		eventually(t, command, func() bool {
			out, _, status := run(words(command)[1:]...)
			return status == 0 && out != ""
		})
	}
	if back == nil || back.end(os.Interrupt) != 0 {
		t.Error("the node that was killed did not come back, and end, well")
	}
	if status := p.end(os.Interrupt); status != 0 {
		t.Errorf("status %d: %s", status, p.printed())
	}
	silent(t, p.printed())
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", dir, err)
	}
}

// The processes of a demonstration end when it is killed.
func TestDemoKilled(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // the killed process cannot remove its folder
	p := begin(t, "1. The processes agree", "demo", "--width", "100")
	_ = p.end(os.Kill)
	silent(t, p.printed())
}

// A demonstration whose reader ends, such as "head -1", leaves no folder with keys behind.
func TestDemoUnread(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	if status := cli.Run(catalog.All(), []string{"demo", "--once"}, unwritable{syscall.EPIPE}, io.Discard); status != 3 {
		t.Errorf("got status %d, want 3", status)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
}

// A program that writes to a pipe without a reader gets a write error and no signal.
func TestPipeUnread(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "PARLEY_NODE=list")
	cmd.Args = []string{"parley", "list"}
	cmd.Stdout = w
	err = cmd.Run()
	var ended *exec.ExitError
	if closed := w.Close(); closed != nil || !errors.As(err, &ended) || ended.ExitCode() != 3 {
		t.Errorf("got %v, want exit status 3", err)
	}
}

// silent waits until nothing listens at the addresses of a demonstration.
func silent(t *testing.T, printed string) {
	t.Helper()
	addresses := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindAllString(printed, -1)
	if len(addresses) < 8 {
		t.Errorf("%d addresses: %s", len(addresses), printed)
	}
	for _, address := range addresses {
		eventually(t, address+" is served", func() bool { return !listens(address) })
	}
}
