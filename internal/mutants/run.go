package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// verdict is the result for a mutant.
type verdict int

const (
	caught verdict = iota
	survived
	broken     // it does not apply or does not compile, so it shows nothing
	equivalent // declared to break nothing, and indeed no test fails
	mistaken   // declared to break nothing, but a test fails
)

func (v verdict) String() string {
	return [...]string{"caught", "SURVIVED", "BROKEN", "equivalent", "NOT EQUIVALENT"}[v]
}

// good reports whether the verdict is as it should be.
func (v verdict) good() bool { return v == caught || v == equivalent }

// outcome is the verdict on one mutant with its evidence.
type outcome struct {
	verdict verdict
	finding
	took time.Duration
}

// finding is how a mutant was caught.
type finding struct {
	by string // the first test that failed, or why the mutant is broken
	// seeds is the number of seeds that the test had tried when it failed, including the one that it names; 0 for a
	// test that names none.
	seeds int
	hung  bool // it did not end
}

// event is a line of go test -json.
type event struct {
	Action      string
	Package     string
	Test        string
	Output      string
	FailedBuild string
}

// try runs the tests of a mutant in the module at root.
func (m mutant) try(root string) outcome {
	begin := time.Now()
	v, f := m.test(root)
	switch {
	case m.equivalent == "" || v == broken:
	case v == survived:
		v, f.by = equivalent, m.equivalent
	default:
		v = mistaken
	}
	return outcome{v, f, time.Since(begin)}
}

func (m mutant) test(root string) (v verdict, f finding) {
	unusable := func(why error) (verdict, finding) { return broken, finding{by: why.Error()} }
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return unusable(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, replace, err := m.overlay(root, dir)
	if err != nil {
		return unusable(err)
	}
	args := []string{"test", "-json", "-count=1", "-failfast", "-vet=off", "-timeout=3m", "-overlay=" + overlay}
	if m.run != "" {
		args = append(args, "-run="+m.run)
	}
	v, f = goTest(root, append(args, m.tests...))
	for path, changed := range replace { // order: the paths do not overlap
		written := regexp.MustCompile(`\S*` + regexp.QuoteMeta(filepath.Join(filepath.Base(dir), filepath.Base(changed))))
		f.by = written.ReplaceAllLiteralString(f.by, strings.TrimPrefix(path, root+string(filepath.Separator)))
	}
	return v, f
}

// goTest runs the go command and derives the verdict from its events.
func goTest(root string, args []string) (verdict, finding) {
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		return survived, finding{}
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return broken, finding{by: err.Error()}
	}
	return judge(out, stderr.String())
}

// judge reads the events of a go test that failed. A failed test or a panic catches the mutant; a package that does
// not compile shows nothing.
func judge(events []byte, stderr string) (verdict, finding) {
	var f finding
	var compiler, panicked string
	said := make(map[string]int) // by package and test: the seeds in its output
	dec := json.NewDecoder(bytes.NewReader(events))
	for {
		var e event
		if dec.Decode(&e) != nil {
			break
		}
		test := e.Package + " " + e.Test
		switch {
		case e.Action == "build-output" && !strings.HasPrefix(e.Output, "#") && compiler == "":
			compiler = strings.TrimSpace(e.Output)
		case e.FailedBuild != "":
			return broken, finding{by: "does not compile: " + compiler}
		case e.Action == "fail" && e.Test != "" && f.by == "":
			f.by, f.seeds = e.Test, said[test]
		case e.Action == "output":
			if said[test] == 0 {
				said[test] = seeds(e.Output)
			}
			f.hung = f.hung || strings.HasPrefix(e.Output, "panic: test timed out")
			if strings.HasPrefix(e.Output, "panic: ") && panicked == "" {
				panicked = strings.TrimSpace(e.Output)
			}
		}
	}
	if f.by == "" {
		f.by, f.seeds = panicked, seeds(panicked)
	}
	if f.by == "" {
		return broken, finding{by: "go test did not run: " + firstLine(stderr)}
	}
	return caught, f
}

var (
	seed = regexp.MustCompile(`\bseed (\d+)\b`)
	runs = regexp.MustCompile(`\b(?:in|of) (?:all )?(\d+) (?:runs|seeds)\b`)
)

// seeds returns the number of seeds in a line of a test's output, or 0 if there is none. A test over seeds begins
// with seed 0 or 1 and names the one at which it fails; a test for an event that never came names the number of runs.
func seeds(line string) int {
	if found := seed.FindStringSubmatch(line); found != nil {
		if n, err := strconv.Atoi(found[1]); err == nil {
			return n + 1
		}
	}
	if found := runs.FindStringSubmatch(line); found != nil {
		n, _ := strconv.Atoi(found[1])
		return n
	}
	return 0
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// baseline demands that the tests of the mutants pass without them: otherwise every mutant would seem to be caught.
func baseline(root string, mutants []mutant) error {
	args := []string{"test", "-json", "-vet=off", "-timeout=10m"}
	if some := chosen(mutants); some != "" {
		args = append(args, "-run="+some)
	}
	var packages []string
	for _, m := range mutants {
		packages = append(packages, m.tests...)
	}
	slices.Sort(packages)
	if v, f := goTest(root, append(args, slices.Compact(packages)...)); v != survived {
		return fmt.Errorf("the tests fail without any mutant: %s", f.by)
	}
	return nil
}

// chosen returns the tests that suffice for some mutants, as a regular expression, or "" if one of them needs all
// tests of its packages.
func chosen(mutants []mutant) string {
	var all []string
	for _, m := range mutants {
		if m.run == "" {
			return ""
		}
		for one := range strings.SplitSeq(m.run, "|") {
			if !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	return strings.Join(all, "|")
}
