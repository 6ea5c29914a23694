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
	"strings"
	"time"
)

// verdict is what became of a mutant.
type verdict int

const (
	caught verdict = iota
	survived
	broken     // it does not apply or does not compile, so it tells nothing
	equivalent // declared to break nothing, and indeed no test fails
	mistaken   // declared to break nothing, but a test fails
)

func (v verdict) String() string {
	return [...]string{"caught", "SURVIVED", "BROKEN", "equivalent", "NOT EQUIVALENT"}[v]
}

// good tells whether all is as it should be.
func (v verdict) good() bool { return v == caught || v == equivalent }

// outcome is the verdict on one mutant and what it rests on.
type outcome struct {
	verdict verdict
	by      string // the first test that failed, or why the mutant is broken
	took    time.Duration
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
	v, by := m.test(root)
	switch {
	case m.equivalent == "" || v == broken:
	case v == survived:
		v, by = equivalent, m.equivalent
	default:
		v = mistaken
	}
	return outcome{v, by, time.Since(begin)}
}

func (m mutant) test(root string) (v verdict, by string) {
	if m.err != nil {
		return broken, m.err.Error()
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return broken, err.Error()
	}
	defer func() { _ = os.RemoveAll(dir) }()
	replace, err := m.overlay(root, dir)
	if err != nil {
		return broken, err.Error()
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return broken, err.Error()
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		return broken, err.Error()
	}
	args := []string{"test", "-json", "-count=1", "-failfast", "-vet=off", "-timeout=3m", "-overlay=" + overlay}
	if m.run != "" {
		args = append(args, "-run="+m.run)
	}
	v, by = goTest(root, append(args, m.tests...))
	for path, changed := range replace { // order: the paths do not overlap
		written := regexp.MustCompile(`\S*` + regexp.QuoteMeta(filepath.Join(filepath.Base(dir), filepath.Base(changed))))
		by = written.ReplaceAllLiteralString(by, strings.TrimPrefix(path, root+string(filepath.Separator)))
	}
	return v, by
}

// goTest runs the go command and judges by its events.
func goTest(root string, args []string) (v verdict, by string) {
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		return survived, ""
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return broken, err.Error()
	}
	return judge(out, stderr.String())
}

// judge reads the events of a go test that failed. A test that failed, or a
// panic, catches the mutant; a package that does not compile tells nothing.
func judge(events []byte, stderr string) (v verdict, by string) {
	var compiler, panicked string
	dec := json.NewDecoder(bytes.NewReader(events))
	for {
		var e event
		if dec.Decode(&e) != nil {
			break
		}
		switch {
		case e.Action == "build-output" && !strings.HasPrefix(e.Output, "#") && compiler == "":
			compiler = strings.TrimSpace(e.Output)
		case e.FailedBuild != "":
			return broken, "does not compile: " + compiler
		case e.Action == "fail" && e.Test != "" && by == "":
			by = e.Test
		case e.Action == "output" && strings.HasPrefix(e.Output, "panic: ") && panicked == "":
			panicked = strings.TrimSpace(e.Output)
		}
	}
	switch {
	case by != "":
		return caught, by
	case panicked != "":
		return caught, panicked
	}
	return broken, "go test did not run: " + firstLine(stderr)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// baseline demands that the tests of the mutants pass as the module stands: else
// every mutant would seem to be caught.
func baseline(root string, mutants []mutant) error {
	seen := make(map[string]bool)
	args := []string{"test", "-json", "-vet=off", "-timeout=10m"}
	for _, m := range mutants {
		for _, p := range m.tests {
			if !seen[p] {
				seen[p] = true
				args = append(args, p)
			}
		}
	}
	if v, by := goTest(root, args); v != survived {
		return fmt.Errorf("the tests fail without any mutant: %s", by)
	}
	return nil
}
