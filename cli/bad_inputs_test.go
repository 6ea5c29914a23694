package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"parley/cli/console"
	"parley/internal/draw/prose"
	"parley/internal/golden"
)

// badInput is a command line that cannot run, with its exit status and its message.
type badInput struct{ line, want string }

// readBadInputs reads the comment of an archive: pairs of a line "parley ..." and a line "STATUS MESSAGE".
func readBadInputs(t *testing.T, text string) (all []badInput) {
	t.Helper()
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		switch {
		case line == "" || line[0] == '#':
		case strings.HasPrefix(line, "parley"):
			all = append(all, badInput{line: line})
		case len(all) > 0 && all[len(all)-1].want == "":
			all[len(all)-1].want = line
		default:
			t.Fatalf("line %d: %s: it follows no command", i+1, line)
		}
	}
	return all
}

// Each archive in testdata/bad_inputs has command lines that cannot run, with exit status and message, and the files
// that they name. A message is one line. It says where, what is wrong, and what is allowed or what to do; it comes
// from no library.
func TestBadInputs(t *testing.T) {
	archives, err := filepath.Glob("testdata/bad_inputs/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("%d archives, %v", len(archives), err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			file, err := filepath.Abs(name)
			if err != nil {
				t.Fatal(err)
			}
			layBadFiles(t, archive)
			text := string(archive.Comment)
			for _, in := range readBadInputs(t, text) {
				got := in.check(t, filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(file)))))
				if golden.Updating() {
					text = strings.Replace(text, strings.TrimSuffix(in.line+"\n"+in.want, "\n")+"\n", in.line+"\n"+got+"\n", 1)
				} else if got != in.want {
					t.Errorf("%s\ngot  %s\nwant %s", in.line, got, in.want)
				}
			}
			if golden.Updating() {
				archive.Comment = []byte(text)
				if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// layBadFiles makes a temporary folder the working directory, with the files of an archive and some that an archive
// cannot hold.
func layBadFiles(t *testing.T, archive *txtar.Archive) {
	t.Helper()
	t.Chdir(t.TempDir())
	write := func(name string, b []byte, mode os.FileMode) {
		if err := os.WriteFile(name, b, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range archive.Files {
		write(f.Name, f.Data, 0o600)
	}
	for _, dir := range []string{"empty", "folder.yaml", "taken"} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write("huge-line.jsonl", slices.Repeat([]byte("x"), 20<<20), 0o600)
	write("huge.yaml", slices.Repeat([]byte("# a comment\n"), 100_000), 0o600)
	write("binary.yaml", []byte("\x00\x01\xff"), 0o600)
	write("latin1.yaml", []byte("protocol: \xe9ig\n"), 0o600)
	if _, stderr, status := run("run", "om", "--trace", "good.jsonl"); status != 0 {
		t.Fatal(stderr)
	}
	b, err := os.ReadFile("good.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	write("truncated.jsonl", b[:len(b)/2], 0o600)
	lines := strings.SplitAfter(string(b), "\n")
	write("no-end.jsonl", []byte(strings.Join(lines[:len(lines)-2], "")), 0o600)
	write("longer.jsonl", append(b, "{}\n"...), 0o600)
	write("version.jsonl", []byte(strings.Replace(string(b), `"parley":`, `"parley":9`, 1)), 0o600)
	write("protocol.jsonl", []byte(strings.ReplaceAll(string(b), `"om"`, `"mo"`)), 0o600)
}

// Words that no message has: of Go, of its libraries, and contractions.
var ofLibraries = regexp.MustCompile(`panic|goroutine|\.go:\d|strconv|unmarshal|invalid character|unexpected (end|EOF)|` +
	`(^| )yaml: |pflag|parse error|invalid argument|invalid syntax|%!|<nil>|\b\w+n't\b|\x1b|no such file or directory|^open `)

// A message has one of these words, which say what is allowed or what to do.
var whatToDo = regexp.MustCompile(`\b(allowed|expected|did you mean|write|use|omit|names?|check|add|raise|lower|give|keep|choose|` +
	`delete|limit|leave|record|needed|must|takes its value|lists all|shows what|at (least|most)|(explores|runs) it nevertheless)\b`)

// check runs the command line, checks the form of its message, and returns status and message.
func (in badInput) check(t *testing.T, root string) string {
	t.Helper()
	args := words(strings.ReplaceAll(in.line, "$ROOT", root))[1:]
	stdout, stderr, status := run(args...)
	message := strings.TrimPrefix(strings.TrimSuffix(stderr, "\n"), "parley: ")
	ok := beginsOnce(stderr)
	if here, err := os.Getwd(); err == nil {
		message = strings.ReplaceAll(message, here, "$HERE")
	}
	got := fmt.Sprintf("%d %s", status, message)
	bad := func(what string) { t.Errorf("%s\n%s\n%s", in.line, got, what) }
	if !ok || message == "" || strings.Contains(message, "\n") {
		bad("want one line, which begins with \"parley: \", or once with the command")
	}
	if stdout != "" {
		bad("want nothing on the standard output, got " + stdout[:min(len(stdout), 200)])
	}
	if found := ofLibraries.FindString(message); found != "" {
		bad("these are words of a library or of speech: " + found)
	}
	if !whatToDo.MatchString(message) {
		bad("it does not say what is allowed or what to do")
	}
	if !in.placed(args, message) {
		bad("it does not begin with the flag, the file, or the command, and does not quote an argument")
	}
	const columns = 80
	for line := range strings.SplitSeq(console.FoldError(message, columns), "\n") {
		if prose.Width(line) > columns && strings.Contains(strings.TrimSpace(line), " ") {
			bad(fmt.Sprintf("a line of %d columns on a terminal of %d: %s", prose.Width(line), columns, line))
		}
	}
	return got
}

// aFlag is a flag at the beginning of a message.
var aFlag = regexp.MustCompile(`^--?[a-z][a-z-]*: `)

// placed reports whether a message says where the error is: it begins with a flag, with the command, or with an
// argument such as a file, or it quotes an argument.
func (in badInput) placed(args []string, message string) bool {
	place, _, _ := strings.Cut(message, ":")
	first, _, _ := strings.Cut(place, " ")
	return aFlag.MatchString(message) || strings.HasPrefix(place, "parley ") && strings.HasPrefix(in.line, place) ||
		slices.ContainsFunc(args, func(arg string) bool {
			flag, _, _ := strings.Cut(arg, "=")
			return arg == place || arg == first || strings.HasPrefix(place, arg+"/") ||
				strings.Contains(message, fmt.Sprintf("%.200q", arg)) || len(flag) > 1 && strings.Contains(message, "unknown flag "+flag)
		})
}
