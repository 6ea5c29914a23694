package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/catalog"
	"parley/internal/golden"
)

// elsewhere names the commands whose examples write files, run until they are stopped, or call a cluster. Other tests
// run them, such as TestCertExamples, TestClusterExamples, TestClientExamples, TestNewProtocol and TestExerciseCheck.
const elsewhere = "new exercise cert lab node cluster doctor agree broadcast subscribe table clock commit status"

// Every example of a help text runs, from the top of the repository.
func TestHelpExamples(t *testing.T) {
	t.Chdir("..")
	out, _, _ := run("--help")
	var commands []string
	for _, line := range strings.Split(out, "\n") {
		if word, _, ok := strings.Cut(strings.TrimPrefix(line, "  "), " "); ok && strings.HasPrefix(line, "  ") &&
			!slices.Contains(strings.Fields("parley completion help "+elsewhere), word) && word != "" && word[0] != '-' {
			commands = append(commands, word)
		}
	}
	if len(commands) < 7 {
		t.Fatalf("the help lists %v", commands)
	}
	for _, protocol := range []string{"eig", "om", "sm", "phaseking", "order"} {
		commands = append(commands, "bench "+protocol)
	}
	for _, p := range catalog.All() {
		commands = append(commands, "run "+p.Name)
	}
	commands = append(commands, "trace show", "trace diff", "")
	made := filepath.Join(t.TempDir(), "run.jsonl")
	for _, command := range commands {
		for _, line := range helpExamples(t, command) {
			if strings.Contains(line, "--open") { // it runs until Ctrl-C: TestOpenRun and the tests beside it
				continue
			}
			line = strings.ReplaceAll(line, "run.jsonl", made)
			if out, stderr, status := run(words(line)[1:]...); status != 0 || out == "" && !strings.Contains(line, "--trace") {
				t.Errorf("%s: status %d, %s", line, status, stderr)
			}
		}
	}
	if _, err := os.Stat(made); err != nil {
		t.Errorf("the example of a trace wrote none: %v", err)
	}
}

// helpExamples returns the examples in a command's help text.
func helpExamples(t *testing.T, command string) (lines []string) {
	t.Helper()
	help, _, status := run(append(strings.Fields(command), "--help")...)
	_, after, _ := strings.Cut(help, "Examples:\n")
	for line := range strings.Lines(after) {
		if !strings.HasPrefix(line, "  parley ") {
			break
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	if status != 0 || len(lines) == 0 {
		t.Errorf("%s --help: status %d, %d examples", command, status, len(lines))
	}
	return lines
}

// The README's commands run from the top of the repository, and its picture shows a run.
func TestReadme(t *testing.T) {
	t.Chdir("..")
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	commands := 0
	for _, line := range strings.Split(string(b), "\n") {
		if !strings.HasPrefix(line, "parley ") || strings.HasPrefix(line, "parley cluster up ") {
			continue // the calls have a test of their own
		}
		commands++
		line = strings.ReplaceAll(line, "run.svg", filepath.Join(dir, "run.svg"))
		line = strings.ReplaceAll(line, "run.jsonl", filepath.Join(dir, "run.jsonl"))
		want := 0
		if strings.Contains(line, "explore") && strings.Contains(line, "--beyond-bound") {
			want = 1 // the search finds its goal
		}
		if out, stderr, status := run(words(line)[1:]...); status != want || out == "" {
			t.Errorf("%s: status %d, %s", line, status, stderr)
		}
	}
	if commands < 6 {
		t.Errorf("only %d commands", commands)
	}
	scenarios, err := filepath.Glob("docs/scenarios/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, counted := range []string{
		fmt.Sprintf("all %d protocols", len(catalog.All())), fmt.Sprintf("on %d [scenarios]", len(scenarios)),
	} {
		if !strings.Contains(string(b), counted) {
			t.Errorf("the README does not say %q", counted)
		}
	}
	if lines := strings.Count(string(b), "\n"); lines > 150 {
		t.Errorf("the README has %d lines, more than 150", lines)
	}
}

// The pictures of the documentation are those that the program draws of scenarios, and no others, apart from those of
// the lab, which tools/browser takes.
func TestDocPictures(t *testing.T) {
	t.Chdir("..")
	scenarios := map[string]string{
		"docs/article.svg":            "article",
		"docs/img/causal-orders.svg":  "causal-orders-part",
		"docs/img/clock-skew.svg":     "clock-two-faced",
		"docs/img/commit-blocked.svg": "twophase-blocks",
	}
	drawn := filepath.Join(t.TempDir(), "run.svg")
	for file, scenario := range scenarios { // order: each by itself
		if _, stderr, status := run("run", "--scenario", "docs/scenarios/"+scenario+".yaml", "--svg", drawn); status != 0 {
			t.Errorf("%s: status %d, %s", scenario, status, stderr)
			continue
		}
		got, err := os.ReadFile(drawn)
		if err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, file, got)
	}
	files, err := filepath.Glob("docs/img/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if scenarios[file] == "" && !strings.HasPrefix(file, "docs/img/lab-") {
			t.Errorf("%s: no scenario draws it", file)
		}
	}
}

// words splits a command line like a shell that knows only single quotes.
func words(line string) []string {
	var out []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			out = append(out, part)
		} else {
			out = append(out, strings.Fields(part)...)
		}
	}
	return out
}
