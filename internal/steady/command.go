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

// goTest runs the tests of packages, none from the cache, and returns what did not pass.
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

// loops begins loops that leave processors no rest, and returns what ends them.
func loops(n int) (end func()) {
	before := runtime.GOMAXPROCS(runtime.NumCPU() + n) // this program goes on beside them
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

// git runs a command of git and returns its lines.
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

// clean returns the commit, of which nothing may have changed but the page: a table is of a
// commit. It fails by must.
func clean(ctx context.Context, page string) string {
	for _, line := range must.Get(git(ctx, "status", "--porcelain")) {
		if line[3:] != page {
			must.Failf("%s is not committed: the table is that of a commit", line[3:])
		}
	}
	return must.Get(git(ctx, "rev-parse", "HEAD"))[0]
}

// changed returns the packages with tests of which a file has changed since a commit, or is
// not committed: all if it is one that all packages are built with. It fails by must.
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

// packages returns those with tests, as the go command names them, that files belong to: the
// folder of a Go file, and of other files the nearest one upward that is a package, as data of
// tests is below it. Pages of the root are nobody's.
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

// holds tells whether a folder has a file of such a name.
func holds(root, dir, pattern string) bool {
	found, err := filepath.Glob(filepath.Join(root, dir, pattern))
	return err == nil && len(found) > 0
}

// nested tells whether a folder is in a module below this one.
func nested(root, dir string) bool {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := os.Stat(filepath.Join(root, dir, "go.mod")); !errors.Is(err, os.ErrNotExist) {
			return true
		}
	}
	return false
}
