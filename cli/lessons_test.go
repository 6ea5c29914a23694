package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// lessonScenario finds the scenarios that a command names.
var lessonScenario = regexp.MustCompile(`docs/scenarios/([a-z0-9-]+\.yaml)`)

// The index of each tutorial links its pages in their order, and each page but the last links the next one.
func TestTutorialPagesAreLinked(t *testing.T) {
	indexes, err := filepath.Glob("../docs/tutorials/*/index.md")
	if err != nil || len(indexes) < 2 {
		t.Fatalf("got %d tutorials and error %v", len(indexes), err)
	}
	for _, file := range indexes {
		index, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		pages, err := filepath.Glob(filepath.Join(filepath.Dir(file), "[0-9][0-9]-*.md"))
		if err != nil || len(pages) < 2 {
			t.Fatalf("%s: got %d pages and error %v", file, len(pages), err)
		}
		linked := -1
		for i, page := range pages {
			at := strings.Index(string(index), "("+filepath.Base(page)+")")
			if at <= linked {
				t.Errorf("%s: no link to %s after the one before it", file, filepath.Base(page))
			}
			linked = at
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			if i+1 < len(pages) && !strings.Contains(string(text), "]("+filepath.Base(pages[i+1])+")") {
				t.Errorf("%s: no link to the next page", page)
			}
		}
	}
}

// The page of readers' tasks has ten, each with its reader, its goal, commands for a shell, and what the reader should
// see; the table at its top links each, in order, and the pages that readers come from link the page.
func TestTenTasksAreLinked(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join("../docs", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, from := range []string{"index.md", "explanation/testing.md"} {
		if !strings.Contains(read(from), "how-to/ten-tasks.md)") {
			t.Errorf("%s: no link to the ten tasks", from)
		}
	}
	tasks := strings.Split(read("how-to/ten-tasks.md"), "\n## ")
	if len(tasks) != 11 {
		t.Fatalf("got %d tasks, want 10", len(tasks)-1)
	}
	linked := -1
	for i, task := range tasks[1:] {
		title, _, _ := strings.Cut(task, "\n")
		anchor := strings.ToLower(strings.NewReplacer(".", "", " ", "-").Replace(title))
		at := strings.Index(tasks[0], "["+title+"](#"+anchor+")")
		if at <= linked || !strings.HasPrefix(title, strconv.Itoa(i+1)+". ") {
			t.Errorf("%s: not linked after the task before it", title)
		}
		linked = at
		for _, part := range []string{"**Who:** ", "**Goal:** ", "```console\n$ ", "**You see** "} {
			if !strings.Contains(task, part) {
				t.Errorf("%s: without %q", title, part)
			}
		}
	}
}

// TestLessonsRunEveryScenario holds the commands of docs/tutorials/learn to the scenarios: each file of docs/scenarios
// is named by a command of a lesson, each lesson has commands, and the index links each lesson.
func TestLessonsRunEveryScenario(t *testing.T) {
	const folder = "../docs/tutorials/learn"
	lessons, err := filepath.Glob(filepath.Join(folder, "[0-9][0-9]-*.md"))
	if err != nil || len(lessons) != 13 {
		t.Fatalf("got %d lessons and error %v, want 13", len(lessons), err)
	}
	index, err := os.ReadFile(filepath.Join(folder, "index.md"))
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, lesson := range lessons {
		text, err := os.ReadFile(lesson)
		if err != nil {
			t.Fatal(err)
		}
		examples := readPage(string(text)).examples
		if len(examples) == 0 {
			t.Errorf("%s: got no command", lesson)
		}
		for _, e := range examples {
			for _, match := range lessonScenario.FindAllStringSubmatch(e.command, -1) {
				named[match[1]] = true
			}
		}
		if name := filepath.Base(lesson); !strings.Contains(string(index), "("+name+")") {
			t.Errorf("index.md: got no link to %s", name)
		}
	}
	files, err := filepath.Glob("../docs/scenarios/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d scenarios and error %v", len(files), err)
	}
	var missing []string
	for _, file := range files {
		if name := filepath.Base(file); named[name] {
			delete(named, name)
		} else {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		t.Errorf("no lesson runs %s", strings.Join(missing, ", "))
	}
	for name := range named {
		t.Errorf("a lesson runs %s, which docs/scenarios does not have", name)
	}
}
