package exercise

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"parley"
	"parley/exercises"
	"parley/explore"
	"parley/internal/exploration"
	"parley/internal/form"
	"parley/run"
	"parley/sim"
	"parley/trace"
)

// protocol is the name of the student's protocol.
func (e exercise) protocol() string { return exercises.Prefix + e.name }

// The outcomes of a promise.
const (
	held      = "held"
	broken    = "VIOLATED"
	untested  = "not tested"         // it was never promised, or never demanded anything
	unstarted = "held, but without " // the promises that say that the machine does its work
)

// promise is the grade of one promise.
type promise struct {
	Promise string `json:"promise"`
	Says    string `json:"says"`
	Outcome string `json:"outcome"`
	Points  int    `json:"points"`
	Of      int    `json:"of"`
	Runs    uint64 `json:"runs"`            // simulated runs in which it was promised and demanded something
	Why     string `json:"why,omitempty"`   // how the first run breaks it
	Again   string `json:"again,omitempty"` // the command that shows this run
	failing *failing
}

// failing is a run that breaks a promise.
type failing struct {
	header trace.Header
	log    *trace.Log
}

// grade is the grade of a machine. It is the JSON output of "parley exercise check".
type grade struct {
	Exercise string    `json:"exercise"`
	Points   int       `json:"points"`
	Of       int       `json:"of"`
	Promises []promise `json:"promises"`
	Runs     uint64    `json:"runs"`   // simulated runs
	States   uint64    `json:"states"` // explored states
	// Failed is why nothing counts: a machine panics, or does not come to rest. Again is the command that shows it.
	Failed string `json:"failed,omitempty"`
	Again  string `json:"again,omitempty"`
}

// steps is how many steps a run has. A machine that needs more does not come to rest.
const steps = 20_000

// grader grades one machine.
type grader struct {
	exercise
	p       parley.Protocol
	grade   grade
	endless func(grade)
}

// The times after which a step of a machine counts as endless. A search ends by itself before.
const (
	longestRun    = time.Minute
	longestSearch = 6 * time.Minute
)

// graded grades the machines of a protocol. If a step of a machine does not end, it calls endless with the grade,
// concurrently, and does not return before the step does.
func (e exercise) graded(ctx context.Context, p parley.Protocol, endless func(grade)) (grade, error) {
	g := grader{exercise: e, p: p, endless: endless, grade: grade{Exercise: e.name, Of: e.sum()}}
	for _, one := range e.points {
		i := slices.IndexFunc(p.Properties, func(q parley.Property) bool { return q.Name == one.promise })
		if i < 0 {
			return g.grade, fmt.Errorf("parley exercise check: %s has no promise %q: restore %s", p.Name, one.promise, e.main())
		}
		g.grade.Promises = append(g.grade.Promises, promise{
			Promise: one.promise, Says: p.Properties[i].Says, Outcome: untested, Of: one.points,
		})
	}
	for _, args := range e.simulated {
		if err := g.simulate(ctx, args); err != nil {
			return g.grade, err
		}
	}
	for _, args := range e.explored {
		if err := g.explore(ctx, args); err != nil {
			return g.grade, err
		}
	}
	g.count()
	return g.grade, nil
}

// simulate makes simulated runs with the given arguments.
func (g *grader) simulate(ctx context.Context, args string) error {
	made, err := g.setup(args, 1)
	if err != nil {
		return err
	}
	spec := made.Spec
	spec.Plan = made.Open
	memory := new(sim.Sim)
	for seed := uint64(1); seed <= g.seeds; seed++ {
		if ctx.Err() != nil {
			return errInterrupted
		}
		spec.Seed = seed
		again := fmt.Sprintf("run %s %s --seed %d", g.protocol(), args, seed)
		late := g.watch(longestRun, "a run", again)
		t := spec.Try(memory)
		late.Stop()
		g.grade.Runs++
		if why := t.Breaks(run.Sound); why != "" {
			g.fails("the machine panics: "+why, again)
			return nil
		}
		if t.GivenUp {
			g.fails(fmt.Sprintf("after %d steps of a run something is still due", steps), again+" --steps "+strconv.Itoa(steps))
			return nil
		}
		for _, v := range t.Verdicts {
			p := g.promise(v.Property.Name)
			switch {
			case p == nil || !v.Promise.Holds || p.Outcome == broken:
			case v.Broken != nil:
				p.Outcome, p.Why, p.Again = broken, v.Broken.Error(), g.command(again)
				if p.failing, err = g.failing(args, seed); err != nil {
					return err
				}
			case v.Vacuous == "":
				p.Runs++
			}
		}
	}
	return nil
}

// watch calls endless after a time, unless it is stopped.
func (g *grader) watch(limit time.Duration, what, again string) *time.Timer {
	return time.AfterFunc(limit, func() {
		late := *g
		late.grade.Promises = slices.Clone(g.grade.Promises)
		late.fails(fmt.Sprintf("a step of the machine does not end: %s is not over after %.0f s", what, limit.Seconds()),
			again)
		late.count()
		g.endless(late.grade)
	})
}

// setup makes a run from arguments and a seed.
func (g *grader) setup(args string, seed uint64) (form.Setup, error) {
	fs := pflag.NewFlagSet(g.p.Name, pflag.ContinueOnError)
	f := form.New(g.p, fs)
	err := fs.Parse(append(words(args), "--steps", strconv.Itoa(steps), "--seed", strconv.FormatUint(seed, 10)))
	if err != nil {
		return form.Setup{}, err
	}
	return f.Setup()
}

// failing makes the trace of a simulated run.
func (g *grader) failing(args string, seed uint64) (*failing, error) {
	made, err := g.setup(args, seed)
	if err != nil {
		return nil, err
	}
	done, err := made.Simulate()
	if err != nil {
		return nil, err
	}
	return &failing{made.Header(done.Facts), done.Log}, nil
}

// explore searches a small system.
func (g *grader) explore(ctx context.Context, args string) error {
	if g.grade.Failed != "" {
		return nil
	}
	fs := pflag.NewFlagSet(g.p.Name, pflag.ContinueOnError)
	f := exploration.New(g.p, fs)
	if err := fs.Parse(append(words(args), "--all", "--for", "5m")); err != nil {
		return err
	}
	search, err := f.Setup()
	if err != nil {
		return err
	}
	again := fmt.Sprintf("explore %s %s", g.protocol(), args)
	late := g.watch(longestSearch, "the search", again)
	result, err := exploration.Run(ctx, search, nil)
	late.Stop()
	switch {
	case err != nil:
		return err
	case result.Outcome() == explore.Interrupted:
		return errInterrupted
	}
	out := result.Output()
	g.grade.States += out.States
	for i, found := range out.Findings {
		if found.Property == explore.NoPanic {
			g.fails("the machine panics: "+found.Why, again)
			return nil
		}
		p := g.promise(found.Property)
		if p == nil || p.Outcome == broken {
			continue
		}
		p.Outcome, p.Why = broken, found.Why
		p.Again = g.command(again + " --property '" + found.Property + "'")
		if x := result.Counterexample(i); x != nil {
			p.failing = &failing{x.Header, x.Log}
		}
	}
	if result.Outcome() != explore.Found && result.Outcome() != explore.Exhausted {
		return fmt.Errorf("parley exercise check: the search of %q ended early (%s): check on a faster computer", args,
			result.Outcome())
	}
	return nil
}

var errInterrupted = errors.New("parley exercise check was interrupted")

func (g *grader) promise(name string) *promise {
	i := slices.IndexFunc(g.grade.Promises, func(p promise) bool { return p.Promise == name })
	if i < 0 {
		return nil
	}
	return &g.grade.Promises[i]
}

// fails records why nothing counts.
func (g *grader) fails(why, again string) {
	if g.grade.Failed == "" {
		g.grade.Failed, g.grade.Again = why, g.command(again)
	}
}

// command returns a command of the module.
func (g *grader) command(args string) string { return "go run ./cmd/" + g.name + " " + args }

// count gives the points.
func (g *grader) count() {
	missing := slices.DeleteFunc(slices.Clone(g.work), func(name string) bool {
		p := g.promise(name)
		return p.Outcome != broken && p.Runs > 0
	})
	for i := range g.grade.Promises {
		p := &g.grade.Promises[i]
		switch {
		case p.Outcome == broken || p.Runs == 0 || g.grade.Failed != "":
		case len(missing) > 0:
			p.Outcome = unstarted + strings.Join(missing, " and ")
		default:
			p.Outcome, p.Points = held, p.Of
			g.grade.Points += p.Of
		}
	}
}

// words splits arguments at spaces that are not in single quotes.
func words(text string) (all []string) {
	for i, part := range strings.Split(text, "'") {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}
