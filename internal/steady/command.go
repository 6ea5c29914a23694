package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"parley/internal/must"
)

// goTest runs the tests of packages without the cache, and returns the output of those that failed.
func goTest(ctx context.Context, w way, packages ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-count=1"}, packages...)...)
	cmd.Env = os.Environ()
	switch w {
	case one:
		cmd.Env = append(cmd.Env, "GOMAXPROCS=1")
	case busy:
		defer loops(2)()
	}
	out, err := cmd.CombinedOutput()
	var bad strings.Builder
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "ok  \t") && !strings.Contains(line, "\t[no test files]") {
			bad.WriteString(line)
		}
	}
	return bad.String(), err
}

// loops starts busy loops, and returns a function that ends them.
func loops(n int) (end func()) {
	before := runtime.GOMAXPROCS(runtime.NumCPU() + n) // this program must run beside them
	var over atomic.Bool
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			for !over.Load() {
			}
		})
	}
	return func() {
		over.Store(true)
		all.Wait()
		runtime.GOMAXPROCS(before)
	}
}

// git runs a git command and returns the lines of its output.
func git(ctx context.Context, args ...string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }), nil
}

// clean returns the current commit. Only the page may have changed since, because the table is about one commit. It
// fails by must.
func clean(ctx context.Context, page string) string {
	for _, line := range must.Get(git(ctx, "status", "--porcelain")) {
		if line[3:] != page {
			must.Failf("%s is not committed: the table belongs to a commit", line[3:])
		}
	}
	return must.Get(git(ctx, "rev-parse", "HEAD"))[0]
}

// changed returns the packages with tests that have changed since a commit or have uncommitted changes: all if a
// changed file affects all packages. It fails by must.
func changed(ctx context.Context, base string) []string {
	if base == "" {
		fork, err := git(ctx, "merge-base", "HEAD", "main")
		if err != nil {
			must.Failf("say -base COMMIT: %w", err)
		}
		base = fork[0]
	}
	files := must.Get(git(ctx, "diff", "--name-only", base))
	return packages(".", append(files, must.Get(git(ctx, "ls-files", "--others", "--exclude-standard"))...))
}

// packages returns the packages with tests to which the files belong, as the go command names them: the folder of a
// Go file, and for another file the nearest package at or above it, because test data is below its package. Pages of
// the root belong to none.
func packages(root string, files []string) (out []string) {
	for _, f := range files {
		if f == "go.mod" || f == "go.sum" {
			return []string{"./..."}
		}
		dir := path.Dir(f)
		for path.Ext(f) != ".go" && dir != "." && !holds(root, dir, "*.go") {
			dir = path.Dir(dir)
		}
		page := dir == "." && path.Ext(f) != ".go" && !strings.HasPrefix(f, "testdata/")
		if !page && !nested(root, dir) && holds(root, dir, "*_test.go") {
			out = append(out, "./"+strings.TrimPrefix(dir, "."))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// holds reports whether a folder has a file whose name matches.
func holds(root, dir, pattern string) bool {
	found, err := filepath.Glob(filepath.Join(root, dir, pattern))
	return err == nil && len(found) > 0
}

// nested reports whether a folder belongs to a module below this one.
func nested(root, dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := os.Stat(filepath.Join(root, dir, "go.mod")); !errors.Is(err, os.ErrNotExist) {
			return true
		}
	}
	return false
}
