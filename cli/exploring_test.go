package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// example is a command in a text, and what the text says that it prints. Three dots stand
// for any number of lines.
type example struct {
	command string
	prints  []string
}

// examples are the commands of a text that stand behind a dollar sign.
func examples(t *testing.T, file string) (all []example) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	within := false
	for _, line := range strings.Split(string(b), "\n") {
		command, is := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			within = false
		case is:
			all, within = append(all, example{command: command}), true
		case within:
			last := &all[len(all)-1]
			last.prints = append(last.prints, line)
		}
	}
	return all
}

// How long a search took is another number each time.
var took = regexp.MustCompile(`in [0-9]+\.[0-9] s`)

// same tells whether lines are what is said of them.
func same(said, lines []string) bool {
	for len(said) > 0 && said[0] != "..." {
		if len(lines) == 0 || said[0] != lines[0] {
			return false
		}
		said, lines = said[1:], lines[1:]
	}
	if len(said) == 0 {
		return len(lines) == 0
	}
	for i := range len(lines) + 1 {
		if same(said[1:], lines[i:]) {
			return true
		}
	}
	return false
}

// The commands of the guide print what stands there. An error is one line, and a warning
// another one: the guide folds both.
func TestExploringGuide(t *testing.T) {
	t.Chdir("..")
	dir := t.TempDir()
	all := examples(t, "docs/exploring.md")
	for _, e := range all {
		args := words(e.command)[1:]
		for i := range args {
			if args[i] == "run.jsonl" {
				args[i] = filepath.Join(dir, args[i])
			}
		}
		out, stderr, _ := run(args...)
		out = took.ReplaceAllString(strings.ReplaceAll(out, dir+string(filepath.Separator), ""), "in 0.0 s")
		got := strings.Split(strings.TrimSpace(out+stderr), "\n")
		if stderr != "" {
			got = []string{strings.Join(got, " ")}
			e.prints = []string{strings.Join(e.prints, " ")}
		}
		for i := range got {
			got[i] = strings.TrimRight(got[i], " ")
		}
		if !same(e.prints, got) {
			t.Errorf("%s\nprints\n%s\nand not\n%s", e.command, strings.Join(got, "\n"), strings.Join(e.prints, "\n"))
		}
	}
	if len(all) < 20 {
		t.Errorf("only %d commands", len(all))
	}
}

// What an example leaves out is left out only where it says so.
func TestExampleLines(t *testing.T) {
	for _, c := range []struct {
		said, lines string
		want        bool
	}{
		{"a b", "a b", true}, {"a", "a b", false}, {"a b", "a", false}, {"a ...", "a b c", true}, {"... c", "a b c", true},
		{"... b", "a b c", false}, {"a ... c", "a c", true}, {"... b ... d", "a b c d", true}, {"... c ... b ...", "a b c", false},
		{"", "", true}, {"...", "", true},
	} {
		if got := same(strings.Fields(c.said), slices.Collect(strings.FieldsSeq(c.lines))); got != c.want {
			t.Errorf("%q of %q: %v", c.said, c.lines, got)
		}
	}
}
