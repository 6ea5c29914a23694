package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every command that the text of a page under docs names, such as "parley cert", exists.
func TestPagesNameCommands(t *testing.T) {
	names := 0
	for _, pattern := range []string{"*.md", "*/*.md", "*/*/*.md"} {
		files, err := filepath.Glob(filepath.Join("..", "docs", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			names += namedCommands(t, file, string(b))
		}
	}
	if names < 80 {
		t.Errorf("only %d commands are named", names)
	}
}

// namedCommands demands that the commands between two backquotes exist, and returns their number.
func namedCommands(t *testing.T, file, text string) (names int) {
	for i, part := range strings.Split(text, "`") {
		if i%2 == 0 || !strings.HasPrefix(part, "parley ") || strings.Contains(part, "\n") {
			continue
		}
		names++
		var args []string
		for _, word := range strings.Fields(part)[1:] {
			if word[0] == '-' {
				break
			}
			if strings.ToUpper(word) != word { // not a placeholder
				args = append(args, strings.TrimSuffix(word, ","))
			}
		}
		if out, stderr, status := run(append(args, "--help")...); status != 0 || !strings.Contains(out, strings.Join(args, " ")) {
			t.Errorf("%s: %s: status %d, %s", file, part, status, stderr)
		}
	}
	return names
}

// The reference of the metrics lists what the source of the API reports, and nothing else.
func TestMetricsReference(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "docs", "reference", "metrics.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)`([a-z]+(?:_[a-z]+)*)`").FindAllStringSubmatch(string(page), -1) {
		listed[m[1]] = m[1] != "byzantine" // the level of a group
	}
	reported := regexp.MustCompile(`\.(?:gauge|count)\("([a-z_]+)"|"parley_([a-z_]+)"`)
	for _, file := range []string{"figures.go", "counts.go"} {
		source, err := os.ReadFile(filepath.Join("..", "cluster", "api", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range reported.FindAllStringSubmatch(string(source), -1) {
			name := m[1] + m[2]
			if _, ok := listed[name]; !ok {
				t.Errorf("%s reports %s, which the page does not list", file, name)
			}
			listed[name] = false
		}
	}
	for name, missing := range listed {
		if missing {
			t.Errorf("the page lists %s, which is not reported", name)
		}
	}
}
