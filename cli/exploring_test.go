package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// example is a command in a page and the output that the page gives. A line of three dots stands for any number of
// lines.
type example struct {
	command string
	prints  []string
}

// examples returns the commands after a dollar sign in a page.
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

// took matches the duration of a search, which varies.
var took = regexp.MustCompile(`in [0-9]+\.[0-9] s`)

// same reports whether a text matches the lines of an example.
func same(said []string, text string) bool {
	pattern := ""
	for _, line := range said {
		if line == "..." {
			pattern += "(?:.*\n)*"
		} else {
			pattern += regexp.QuoteMeta(line) + "\n"
		}
	}
	return regexp.MustCompile("^" + pattern + "$").MatchString(text + "\n")
}

// An example may omit lines only where it has three dots.
func TestExampleLines(t *testing.T) {
	for _, c := range []struct {
		said, text string
		want       bool
	}{
		{"a\n...\nc", "a\nc", true}, {"...\nb\n...\nd", "a\nb\nc\nd", true}, {"...\nb", "a\nb\nc", false}, {"a...", "a\nb", false},
	} {
		if got := same(strings.Split(c.said, "\n"), c.text); got != c.want {
			t.Errorf("%q of %q: %v", c.said, c.text, got)
		}
	}
}

// The commands of the guide print what it shows. An error and a warning are one line each, which the guide folds.
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
		if !same(e.prints, strings.Join(got, "\n")) {
			t.Errorf("%s\nprints\n%s\nand not\n%s", e.command, strings.Join(got, "\n"), strings.Join(e.prints, "\n"))
		}
	}
	if len(all) < 20 {
		t.Errorf("only %d commands", len(all))
	}
}
