package engine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"parley"
	"parley/internal/form"
	"parley/internal/input"
	"parley/internal/lists"
	"parley/run"
)

// Setting says which run a question is about: a protocol or a scenario with flags of "parley run", or traces. A flag
// takes precedence over the same key of the scenario.
type Setting struct {
	Protocol string            `json:"protocol,omitempty"`
	Scenario string            `json:"scenario,omitempty"` // the text of a file
	Flags    map[string]string `json:"flags,omitempty"`
	// Trace is the text of a trace file, or of a bundle of such files. Kept is the beginning of the hash of traces that
	// the engine keeps. If nodes wrote them, Flags may have the flags of "parley trace show" machine and slot.
	Trace string `json:"trace,omitempty"`
	Kept  string `json:"kept,omitempty"`
}

// file is the name of the scenario in errors, which the page does not show.
const file = "scenario"

// viewed are the keys of scenarios that choose what the command line shows. The page shows everything.
var viewed = []string{"show", "tree", "rows", "alive", "width"}

// filled returns the flags as the setting fills them in, and the scenario, which may be nil.
func (e *Engine) filled(s Setting) (*form.Flags, *form.Scenario, error) {
	var scenario *form.Scenario
	if s.Scenario != "" {
		if len(s.Scenario) > form.MaxScenario {
			return nil, nil, errors.New("the scenario is too long")
		}
		var err error
		if scenario, err = form.ParseScenario(file, []byte(s.Scenario)); err != nil {
			return nil, nil, err
		}
		name, err := scenario.Protocol()
		if err != nil {
			return nil, nil, err
		}
		s.Protocol = cmp.Or(s.Protocol, name)
	}
	p, err := input.Protocol(e.protocols, s.Protocol)
	if err != nil {
		return nil, nil, &parley.FlagError{Flag: "protocol", Err: err}
	}
	f := form.New(p, pflag.NewFlagSet(p.Name, pflag.ContinueOnError))
	if err := f.Set().Set("memory", "1"); err != nil {
		return nil, nil, err
	}
	for _, name := range viewed {
		f.Set().String(name, "", "")
	}
	f.ViewOnly = append(f.ViewOnly, viewed...)
	for _, name := range slices.Sorted(maps.Keys(s.Flags)) {
		if f.Set().Lookup(name) == nil || !form.FileMaySet(name) {
			return nil, nil, parley.FlagErrorf(name, "%s has no such setting", p.Name)
		}
		if err := f.Set().Set(name, s.Flags[name]); err != nil {
			return nil, nil, err
		}
	}
	return f, scenario, scenario.Apply(f)
}

// The sizes of the largest run. A page may ask for anything, and the engine may have the memory of a browser.
const (
	mostSteps  = 100_000
	mostEvents = 600_000
)

// make makes the run of a setting.
func (e *Engine) make(s Setting) (*made, error) {
	if s.Trace != "" {
		return e.traced(s.Trace, s.Flags)
	}
	f, scenario, err := e.filled(s)
	if err != nil {
		return nil, err
	}
	setup, err := f.Setup()
	if err == nil && setup.Host != "" {
		err = parley.FlagErrorf("host", "the page simulates its runs: omit it")
	}
	if err != nil {
		return nil, scenario.About(err)
	}
	limited := setup.Plan.Steps == 0 || setup.Plan.Steps > mostSteps
	if limited {
		setup.Plan.Steps = mostSteps
	}
	done, err := setup.Simulate()
	if err != nil {
		return nil, err
	}
	if limited && done.GivenUp || done.Log.Len() > mostEvents {
		return nil, fmt.Errorf("the run has more than %d steps or %d events, too many for the page: make it smaller, "+
			"or use parley run", mostSteps, mostEvents)
	}
	return newMade(setup.Run, done.Log, done.Facts, done.Tree, nil)
}

// traced returns the run of a trace file, or of several.
func (e *Engine) traced(text string, flags map[string]string) (*made, error) {
	r, err := e.recording(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	return r.make(flags)
}

// most is how many runs an engine remembers.
const most = 4

// runs remembers the last runs by their settings.
type runs struct {
	sync.Mutex
	known []known // the last one is the newest
}

type known struct {
	setting string
	run     func() (*made, error)
}

// of returns the run of a setting. Concurrent questions about one run wait for each other.
func (e *Engine) of(s Setting) (*made, error) {
	make := func() (*made, error) { return e.make(s) }
	if s.Kept != "" {
		r, err := e.kept.find(s.Kept)
		if err != nil || r.nodes == nil {
			return r.run, err
		}
		make = func() (*made, error) { return r.make(s.Flags) }
	}
	b, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	e.runs.Lock()
	i := slices.IndexFunc(e.runs.known, func(k known) bool { return k.setting == string(b) })
	var k known
	if i >= 0 {
		k = e.runs.known[i]
		e.runs.known = slices.Delete(e.runs.known, i, i+1)
	} else {
		k = known{string(b), sync.OnceValues(make)}
	}
	e.runs.known = append(e.runs.known, k)
	if len(e.runs.known) > most {
		e.runs.known = slices.Delete(e.runs.known, 0, 1)
	}
	e.runs.Unlock()
	return k.run()
}

func (e *Engine) form(q aboutRun) (any, error) {
	f, file, err := e.filled(q.Setting)
	if f == nil {
		return nil, err
	}
	p, wrong := f.Protocol()
	if wrong != nil {
		return nil, file.About(wrong)
	}
	if err == nil {
		var made form.Setup
		if made, err = f.Setup(); err == nil {
			p = made.Protocol
		}
		err = file.About(err)
	}
	a := FormAnswer{
		Protocol:  ProtocolSummary{p.Name, p.Title, p.Paper, p.Timing.String(), p.Faults.String()},
		Fields:    fieldsOf(f),
		Names:     lists.Each(parley.Everyone(p.N).All(), f.Names.Full),
		Proposers: f.Names.List(p.Proposers),
		Behaviors: behaviorsOf(run.Lying(p)),
	}
	a.Within, a.Bound = boundOf(p)
	if err != nil {
		why := failure(err)
		a.Error = &why
	}
	return a, nil
}

func (e *Engine) about(struct{ asked }) (any, error) {
	gallery, err := gallery(e.scenarios)
	return About{
		Version: e.version,
		Protocols: lists.Of(e.protocols, func(p parley.Protocol) ProtocolSummary {
			return ProtocolSummary{p.Name, p.Title, p.Paper, p.Timing.String(), p.Faults.String()}
		}),
		Gallery: gallery,
		Lessons: lessons(),
	}, err
}
