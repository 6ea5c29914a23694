package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// begun returns a series of 20 runs that keeps its progress in a file, of which one run fails or is interrupted.
func begun(t *testing.T, file, commit string, fails, interrupted int) (s *series, ctx context.Context, ways *[]way) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ways = new([]way)
	s = &series{runs: 20, commit: commit, state: file, out: new(bytes.Buffer)}
	s.test = func(_ context.Context, w way) (string, error) {
		*ways = append(*ways, w)
		switch len(s.passed) {
		case interrupted:
			cancel()
			return "", errors.New("signal: interrupt")
		case fails:
			return "--- FAIL: TestX (0.00s)\n", errors.New("exit status 1")
		}
		return "", nil
	}
	if err := s.load(); err != nil {
		t.Fatal(err)
	}
	return s, ctx, ways
}

func count(ways []way, w way) int {
	return len(slices.DeleteFunc(slices.Clone(ways), func(x way) bool { return x != w }))
}

func TestSeriesHasEachWay(t *testing.T) {
	s, ctx, ways := begun(t, filepath.Join(t.TempDir(), "s.json"), "c", -1, -1)
	if err := s.do(ctx); err != nil {
		t.Fatal(err)
	}
	if len(*ways) != 20 || count(*ways, alone) != 10 || count(*ways, one) != 5 || count(*ways, busy) != 5 {
		t.Errorf("got %q, want 20 runs, 5 with one processor and 5 beside loops", *ways)
	}
	short := series{runs: 3, out: new(bytes.Buffer)}
	var got []way
	short.test = func(_ context.Context, w way) (string, error) { got = append(got, w); return "", nil }
	if err := short.do(t.Context()); err != nil || !slices.Equal(got, []way{alone, one, busy}) {
		t.Errorf("a short series: got %q, %v, want each way once", got, err)
	}
}

// An interrupted run is repeated, and those before it are not. Another commit starts at 0.
func TestSeriesResumes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "bin", "s.json")
	s, ctx, _ := begun(t, file, "c", -1, 7)
	if err := s.do(ctx); err == nil || !strings.Contains(err.Error(), "interrupted after 7 of 20") {
		t.Errorf("got %v, want that it was interrupted", err)
	}
	s, ctx, ways := begun(t, file, "c", -1, -1)
	if err := s.do(ctx); err != nil || len(*ways) != 13 || (*ways)[0] != busy || len(s.passed) != 20 {
		t.Errorf("got %d runs, the first %s, %v, want 13, from the eighth on", len(*ways), (*ways)[0], err)
	}
	if s, _, _ = begun(t, file, "d", -1, -1); len(s.passed) != 0 {
		t.Errorf("got %d runs of another commit, want none", len(s.passed))
	}
}

// One failure ends the series, and none of its runs count.
func TestSeriesFails(t *testing.T) {
	dir := t.TempDir()
	s, ctx, ways := begun(t, filepath.Join(dir, "s.json"), "c", 4, -1)
	if err := s.do(ctx); err == nil || len(*ways) != 5 || !strings.Contains(err.Error(), "run 5 of 20, alone: exit status 1") {
		t.Errorf("got %d runs, %v, want that the fifth failed", len(*ways), err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "s.txt")); err != nil || string(text) != "--- FAIL: TestX (0.00s)\n" {
		t.Errorf("got %q, %v, want what the run printed", text, err)
	}
	if s, _, _ = begun(t, filepath.Join(dir, "s.json"), "c", -1, -1); len(s.passed) != 0 {
		t.Errorf("got %d runs that count, want none", len(s.passed))
	}
}

func TestSeriesTable(t *testing.T) {
	s := &series{commit: strings.Repeat("0123456789", 4), passed: []run{{alone, 100}, {one, 200.4}, {alone, 90}, {busy, 300}, {alone, 120}}}
	table := s.table("go1.26, 2 processors, 2026-11-22")
	want := "Commit 012345678901, go1.26, 2 processors, 2026-11-22: 5 runs of all tests in a row, none failed.\n\n" +
		"| way | runs | fastest | median | slowest |\n| --- | ---: | ---: | ---: | ---: |\n" +
		"| alone | 3 | 90 s | 100 s | 120 s |\n| GOMAXPROCS=1 | 1 | 200 s | 200 s | 200 s |\n" +
		"| beside two busy loops | 1 | 300 s | 300 s | 300 s |\n"
	if table != want {
		t.Errorf("got\n%swant\n%s", table, want)
	}
}

// The repository's page has a place for the table.
func TestPageHasPlace(t *testing.T) {
	if _, err := part.Read("../../docs/explanation/testing.md"); err != nil {
		t.Error(err)
	}
}

func TestPackagesOfFiles(t *testing.T) {
	root := t.TempDir()
	for _, f := range []string{
		"go.mod", "a.go", "a_test.go", "testdata/x", "README.md", "one/a.go", "one/a_test.go", "one/testdata/mutants.txt",
		"one/bare/a.go", "docs/x.md", "tools/go.mod", "tools/x/a.go", "tools/x/a_test.go", "one/only_test/a_test.go",
	} {
		f = filepath.Join(root, f)
		if err := os.MkdirAll(filepath.Dir(f), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for files, want := range map[string]string{
		"a.go":                        "./",
		"testdata/x":                  "./",
		"README.md docs/x.md .ci/run": "",
		"one/a.go one/a_test.go a.go": "./ ./one",
		"one/testdata/mutants.txt":    "./one",
		"one/bare/a.go":               "",
		"tools/x/a.go":                "",
		"one/removed.go gone/x.go":    "./one",
		"one/only_test/a_test.go":     "./one/only_test",
		"one/a.go go.mod":             "./...",
	} {
		if got := packages(root, strings.Fields(files)); strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", files, got, want)
		}
	}
}

// Loops end and release their processors.
func TestLoopsEnd(*testing.T) { loops(2)() }
