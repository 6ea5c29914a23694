package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"parley/internal/made"
	"parley/internal/must"
)

// way is the condition of a run.
type way string

const (
	alone way = "alone"
	one   way = "GOMAXPROCS=1"
	busy  way = "beside two busy loops"
)

// order is the repeated sequence of ways.
var order = []way{alone, one, alone, busy}

// run is a run that passed.
type run struct {
	Way     way
	Seconds float64
}

// series is many runs of the same tests.
type series struct {
	runs   int
	commit string
	state  string // the file with the progress; "": none
	out    io.Writer
	test   func(context.Context, way) (output string, err error)
	passed []run
}

// kept is the content of that file.
type kept struct {
	Commit string
	Passed []run
}

// way returns the way of a run, by its number from 0. A short series has each way once.
func (s *series) way(i int) way {
	if s.runs == 3 {
		return []way{alone, one, busy}[i]
	}
	return order[i%len(order)]
}

// load reads the progress of an interrupted command, if that was at the same commit.
func (s *series) load() error {
	text, err := os.ReadFile(s.state)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	var k kept
	if err := json.Unmarshal(text, &k); err != nil {
		return fmt.Errorf("%s: %w; remove it", s.state, err)
	}
	if k.Commit == s.commit {
		s.passed = k.Passed[:min(len(k.Passed), s.runs)]
	}
	return nil
}

// save writes the progress.
func (s *series) save() (err error) {
	if s.state == "" {
		return nil
	}
	defer must.Return(&err)
	text := must.Get(json.Marshal(kept{s.commit, s.passed}))
	must.Do(os.MkdirAll(filepath.Dir(s.state), 0o750))
	must.Do(os.WriteFile(s.state+".new", text, 0o666))
	return os.Rename(s.state+".new", s.state)
}

// do makes the remaining runs. The first failure ends it, and the next command starts the series from scratch: a test
// that fails once in twenty runs fails.
func (s *series) do(ctx context.Context) error {
	for i := len(s.passed); i < s.runs; i++ {
		w, began := s.way(i), time.Now()
		output, err := s.test(ctx, w)
		took := time.Since(began)
		if ctx.Err() != nil {
			return fmt.Errorf("interrupted after %d of %d runs", len(s.passed), s.runs)
		}
		if err != nil {
			fmt.Fprintf(s.out, "run %d of %d, %s: FAILED after %.0f s\n%s", i+1, s.runs, w, took.Seconds(), output)
			s.passed = nil
			return errors.Join(fmt.Errorf("run %d of %d, %s: %w", i+1, s.runs, w, err), s.save(), s.keep(output))
		}
		s.passed = append(s.passed, run{w, took.Seconds()})
		fmt.Fprintf(s.out, "run %d of %d, %s: passed in %.0f s\n", i+1, s.runs, w, took.Seconds())
		if err := s.save(); err != nil {
			return err
		}
	}
	return nil
}

// keep stores the output of a failed run.
func (s *series) keep(output string) error {
	if s.state == "" {
		return nil
	}
	return os.WriteFile(strings.TrimSuffix(s.state, ".json")+".txt", []byte(output), 0o666)
}

// table returns the table for the page.
func (s *series) table(where string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Commit %.12s, %s: %d runs of all tests in a row, none failed.\n\n",
		s.commit, where, len(s.passed))
	b.WriteString("| way | runs | fastest | median | slowest |\n| --- | ---: | ---: | ---: | ---: |\n")
	for _, w := range []way{alone, one, busy} {
		var took []float64
		for _, r := range s.passed {
			if r.Way == w {
				took = append(took, r.Seconds)
			}
		}
		slices.SortFunc(took, cmp.Compare)
		if n := len(took); n > 0 {
			fmt.Fprintf(&b, "| %s | %d | %.0f s | %.0f s | %.0f s |\n", w, n, took[0], took[n/2], took[n-1])
		}
	}
	return b.String()
}

// part is the place of the table on the page.
var part = made.Part{Name: "steady", Command: "make steady"}
