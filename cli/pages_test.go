package cli_test

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"parley/internal/golden"
)

// example is a command of a page and the output that the page shows below it, where the line "..." stands for any
// number of lines. Or it is a file of a page, with its lines.
type example struct {
	head    string // the lines of the page before the output
	command string
	file    string // the file that the block contains, or whose change it shows; then there is no command
	change  bool
	real    bool // run by a shell, between real processes, in TestTutorials
	prints  []string
}

// page is a file of documentation: its examples, and the text between them, one piece more.
type page struct {
	between  []string
	examples []example
}

// fileBlock matches the first line of a block that contains a file, or a change of one.
var fileBlock = regexp.MustCompile("^```(go|python|yaml|json|diff) ([^ ]+)$")

// readPage reads a page. A command follows "$ ", and continues on the next line after a backslash; its output ends at the
// next command or at the end of the block. Blocks "console" are for TestTutorials, and so are the files.
func readPage(text string) page {
	p := page{between: []string{""}}
	real := false // within a block "console"
	var last *example
	for line := range strings.Lines(text) {
		bare := strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "```") {
			if m := fileBlock.FindStringSubmatch(bare); m != nil {
				p.examples = append(p.examples, example{head: line, file: m[2], change: m[1] == "diff", real: true})
				p.between = append(p.between, "")
				last = &p.examples[len(p.examples)-1]
				continue
			}
			last, real = nil, bare == "```console"
		}
		command, is := strings.CutPrefix(bare, "$ ")
		switch {
		case is && (last == nil || last.file == ""):
			p.examples = append(p.examples, example{head: line, command: command, real: real})
			p.between = append(p.between, "")
			last = &p.examples[len(p.examples)-1]
		case last != nil && strings.HasSuffix(last.command, "\\"):
			last.head += line
			last.command += "\n" + bare
		case last != nil:
			last.prints = append(last.prints, bare)
		default:
			p.between[len(p.between)-1] += line
		}
	}
	return p
}

// write is the reverse of readPage.
func (p page) write() string {
	var b strings.Builder
	b.WriteString(p.between[0])
	for i, e := range p.examples {
		b.WriteString(e.head)
		for _, line := range e.prints {
			b.WriteString(line + "\n")
		}
		b.WriteString(p.between[i+1])
	}
	return b.String()
}

// gap is the line of a page that stands for any number of lines of output.
const gap = "..."

// same reports whether output is what a page shows of it, or begins with that.
func same(shown, got []string, begins bool) bool {
	pattern, end := "^", "$"
	for _, line := range shown {
		if line == gap {
			pattern += "(?:.*\n)*"
		} else {
			pattern += strings.ReplaceAll(regexp.QuoteMeta(line), regexp.QuoteMeta(gap), ".*") + "\n"
		}
	}
	if begins {
		end = ""
	}
	return regexp.MustCompile(pattern + end).MatchString(strings.Join(append(slices.Clone(got), ""), "\n"))
}

// renewed returns what a page shows of new output: as many lines before its first gap, and after its last, as now. Lines
// between two gaps stay if the output still has them, in their order.
func renewed(shown, got []string) []string {
	pieces := [][]string{nil}
	for _, line := range shown {
		if line == gap {
			pieces = append(pieces, nil)
		} else {
			pieces[len(pieces)-1] = append(pieces[len(pieces)-1], line)
		}
	}
	last := len(pieces) - 1
	if last == 0 {
		return got
	}
	first := min(len(pieces[0]), len(got))
	end := max(first, len(got)-len(pieces[last]))
	out := append(slices.Clone(got[:first]), gap)
	for from := first; len(pieces) > 2; pieces = pieces[1:] {
		for at := from; at+len(pieces[1]) <= end; at++ {
			if slices.Equal(got[at:at+len(pieces[1])], pieces[1]) {
				out, from = append(append(out, pieces[1]...), gap), at+len(pieces[1])
				break
			}
		}
	}
	return append(out, got[end:]...)
}

// A page leaves out only what it says, and is written as it was read.
func TestPageLines(t *testing.T) {
	for _, c := range []struct {
		shown, got   string
		begins, want bool
	}{
		{"a\n...\nc", "a\nc", false, true}, {"a\n...\nc", "a\nb\nc", false, true},
		{"...\nb\n...\nd", "a\nb\nc\nd", false, true}, {"...\nb", "a\nb\nc", false, false}, {"a...", "a\nb", false, false},
		{"ok ...s", "ok 12s", false, true}, {"ok ...s", "ok 12m", false, false},
		{"a", "a\nb", true, true}, {"b", "a\nb", true, false}, {"a", "a\nb", false, false},
	} {
		if got := same(strings.Split(c.shown, "\n"), strings.Split(c.got, "\n"), c.begins); got != c.want {
			t.Errorf("%q of %q: got %v, want %v", c.shown, c.got, got, c.want)
		}
	}
	const text = "one\n```\n$ a\nb\n$ c\n```\ntwo\n```\n$ d\n...\ne\n```\n"
	p := readPage(text)
	if p.write() != text || len(p.examples) != 3 || p.examples[0].prints[0] != "b" {
		t.Errorf("%+v, written as %q", p, p.write())
	}
	const shell = "```console\n$ a \\\n  b\nc\n```\n```go x/y.go\nd\n$ e\n```\n```diff x/y.go\n-d\n+f\n```\n```\n$ g\n```\n"
	p = readPage(shell)
	want := []example{
		{head: "$ a \\\n  b\n", command: "a \\\n  b", real: true, prints: []string{"c"}},
		{head: "```go x/y.go\n", file: "x/y.go", real: true, prints: []string{"d", "$ e"}},
		{head: "```diff x/y.go\n", file: "x/y.go", change: true, real: true, prints: []string{"-d", "+f"}},
		{head: "$ g\n", command: "g"},
	}
	if p.write() != shell || !reflect.DeepEqual(p.examples, want) {
		t.Errorf("%+v, written as %q", p, p.write())
	}
	if got := renewed([]string{"a", gap, "y", "z"}, []string{"A", "B", "C", "Y", "Z"}); strings.Join(got, "") != "A...YZ" {
		t.Errorf("renewed to %q", got)
	}
	if got := renewed([]string{gap, "b", gap, "x", gap, "d"}, []string{"a", "b", "c", "D"}); strings.Join(got, "") != "...b...D" {
		t.Errorf("renewed to %q", got)
	}
}

// Durations differ from run to run.
var took = regexp.MustCompile(`in [0-9]+\.[0-9] s`)

// pages returns the files of docs that have examples for which is holds, by their paths from the root of the repository.
func pages(t *testing.T, root string, is func(example) bool) map[string]page {
	t.Helper()
	all := make(map[string]page)
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(file string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(file) != ".md" {
			return err
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, file)
		if p := readPage(string(b)); slices.ContainsFunc(p.examples, is) {
			all[filepath.ToSlash(name)] = p
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// Every command behind "$ " in a page under docs prints what the page shows, unless it is for TestTutorials. An error is
// one line and a warning another one: pages fold both. With -update the pages are written anew.
func TestPages(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	all := pages(t, root, func(e example) bool { return !e.real })
	for _, name := range slices.Sorted(maps.Keys(all)) {
		commands += len(all[name].examples)
		t.Run(name, func(t *testing.T) { runPage(t, root, filepath.Join(root, name), all[name]) })
	}
	if commands < 20 {
		t.Errorf("only %d commands", commands)
	}
}

// runPage runs the commands of a page in an empty folder in which the repository's docs can be read.
func runPage(t *testing.T, root, file string, p page) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "docs", "scenarios"), os.DirFS(filepath.Join(root, "docs", "scenarios"))); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for i := range p.examples {
		e := &p.examples[i]
		if e.real {
			continue
		}
		got := output(t, e.command)
		shown := e.prints
		if len(got) == 1 {
			shown = []string{strings.Join(shown, " ")}
		}
		switch {
		case same(shown, got, false):
		case golden.Updating():
			e.prints = renewed(shown, got)
		default:
			t.Errorf("%s\nprints\n%s\nand not\n%s", e.command, strings.Join(got, "\n"), strings.Join(e.prints, "\n"))
		}
	}
	if golden.Updating() {
		if err := os.WriteFile(file, []byte(p.write()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// output runs one command of a page and returns the lines that it prints; an error or warning makes it one line.
func output(t *testing.T, command string) []string {
	t.Helper()
	args := words(command)
	if args[0] != "parley" {
		t.Fatalf("%s: pages run only parley", command)
	}
	out, stderr, _ := run(args[1:]...)
	got := strings.Split(strings.TrimSpace(took.ReplaceAllString(out, "in 0.0 s")+stderr), "\n")
	if stderr != "" {
		got = []string{strings.Join(got, " ")}
	}
	for i := range got {
		got[i] = strings.TrimRight(got[i], " ")
	}
	return got
}
