package run

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"parley/cli/console"
	"parley/cli/foreign"
	"parley/internal/draw/prose"
	"parley/internal/form"
	"parley/internal/scenario"
	"parley/run"
)

// broken is a promise that a run broke.
type broken struct {
	Seed     uint64   `json:"seed"`
	Property string   `json:"property"`
	How      string   `json:"how"`
	Again    []string `json:"again"`           // the arguments that repeat it
	Least    []string `json:"least,omitempty"` // the smallest run that still fails
}

// sweepRunner makes the runs of a sweep.
type sweepRunner struct {
	*console.App
	ctx         context.Context // after its end, the runs made so far are counted
	flags       *flags
	base        setup
	all         bool
	workers     int
	first, last uint64
	crew        *foreign.Crew // starts programs; nil: the processes are machines

	made  atomic.Uint64 // runs so far, for the progress
	found []broken
	wall  time.Duration
	run.SweepReport
}

// unrepeatable reports whether the runs depend on the speed of programs.
func (s *sweepRunner) unrepeatable() bool { return s.crew != nil && s.crew.Unrepeatable() }

// run makes all runs, and shrinks the first failure.
func (s *sweepRunner) run() (err error) {
	if s.crew, err = s.base.crew(s.ctx, foreign.Options{}); err != nil {
		return err
	}
	if s.crew != nil {
		defer s.crew.Close()
		s.base.Processes = s.crew.Hire
	}
	began := time.Now()
	stop := s.Progress(500*time.Millisecond, func() string { return s.progress(began) })
	open := s.base.Spec
	open.Plan = s.base.Open
	seeds := func(yield func(uint64) bool) {
		for seed := s.first; yield(seed) && seed < s.last; seed++ {
		}
	}
	s.SweepReport, err = run.Sweep(s.ctx, open, seeds, run.SweepOptions{
		Workers: s.workers, All: s.all, OnRun: func() { s.made.Add(1) },
	})
	s.wall = time.Since(began)
	stop()
	if s.GivenUp > 0 {
		s.Faults["runs given up"] = s.GivenUp
	}
	s.found = []broken{}
	for _, b := range s.Breaches {
		s.found = append(s.found, broken{Seed: b.Seed, Property: b.Property, How: b.How, Again: s.again(b.Seed)})
	}
	if len(s.found) > 0 {
		open.Seed = s.found[0].Seed
		if least, ok := run.Minimize(s.ctx, open, s.found[0].Property); ok {
			s.found[0].Least = s.least(least)
		}
	}
	return err
}

// again returns the arguments that repeat one run of the sweep.
func (s *sweepRunner) again(seed uint64) []string {
	return append(slices.Clone(s.base.Args), "--seed="+strconv.FormatUint(seed, 10))
}

// least returns the arguments of a run whose plan leaves nothing open: only the seed still draws.
func (s *sweepRunner) least(of run.Spec) []string {
	args := slices.DeleteFunc(slices.Clone(s.base.Args), func(arg string) bool {
		key, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		return key == "faulty" || slices.Contains(scenario.Keys, key)
	})
	args = append(args, form.Dashed(form.DrawnFlags(of, s.base.Names))...)
	return append(args, "--seed="+strconv.FormatUint(of.Seed, 10))
}

// progress returns the progress line.
func (s *sweepRunner) progress(began time.Time) string {
	const cells = 30
	n, total := s.made.Load(), s.last-s.first+1
	filled := int(n * cells / total)
	return fmt.Sprintf("[%s%s] %s of %s seeds, %.0f a second", strings.Repeat("=", filled),
		strings.Repeat(" ", cells-filled), prose.Number(n), prose.Number(total), float64(n)/time.Since(began).Seconds())
}
