package exploration

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"parley"
	"parley/explore"
	"parley/faulty"
	"parley/internal/draw/reading"
	"parley/internal/draw/term"
	"parley/internal/form"
	"parley/internal/report"
	"parley/run"
	"parley/sim"
	"parley/trace"
)

// Counterexample is a run that a search found, in the form of a simulated run: with a complete log and header.
type Counterexample struct {
	finding *explore.Finding
	Run     form.Run
	Header  trace.Header
	Log     *trace.Log // nil if the search was interrupted before it was made
	report  *report.Report
	depth   int    // of the search
	why     string // what broke, with the chosen names
	Story   []string
}

// counterexample makes a counterexample of a run that was found.
func (s *Search) counterexample(finding *explore.Finding) *Counterexample {
	facts := s.facts(finding)
	f := &Counterexample{finding: finding, Run: s.asRun(&finding.Run), Log: finding.Run.Log(true), why: finding.Why}
	for _, step := range finding.Run.Steps {
		if step.Kind != explore.OnStart && (step.Kind != explore.OnRequest || s.protocol.Timing != parley.Synchronous) {
			f.depth++
		}
	}
	f.Header = f.Run.Header(facts)
	f.report = report.New(f.Run, f.Log, facts)
	for _, v := range f.report.Judged { // a split search names processes by their numbers
		if v.Property.Name == finding.Property && v.Broken != nil {
			f.why = v.Broken.Error()
		}
	}
	f.why = strings.ReplaceAll(f.why, "\n", " ") // a panic's text may have several lines
	f.Story = reading.Story(s.protocol, f.Log.Events, f.Run.Style(0))
	return f
}

// asRun returns a run that was found as one of "parley run": its liars, its requests, and its faults.
func (s *Search) asRun(found *explore.Run) form.Run {
	root := s.options.Roots[found.Root]
	spec := run.Spec{
		Protocol: s.protocol, Seed: 1, Name: s.names.Full, Faulty: maps.Clone(root.Faulty), Plan: faultsOf(found),
	}
	for id, how := range root.Faulty { // order: the iterations are independent
		if atWill(how) { // as for a liar that draws its lies
			spec.Faulty[id] = faulty.Random
		}
	}
	var values []string
	for _, q := range root.Requests {
		if q.Msg.Kind == parley.Propose && !strings.Contains(string(q.Msg.Body), ",") {
			values = append(values, string(q.Msg.Body))
			continue
		}
		spec.Plan.Requests = append(spec.Plan.Requests, sim.Request{At: q.At, Msg: q.Msg})
	}
	flags := append([]string{"names=" + string(s.names)}, form.DrawnFlags(spec, s.names)...)
	for _, name := range s.flags.own {
		if g := s.flags.fs.Lookup(name); g.Changed {
			flags = append(flags, name+"="+g.Value.String())
		}
	}
	if s.flags.beyond {
		flags = append(flags, "beyond-bound=true")
	}
	if len(values) > 0 && len(values) == s.protocol.Proposers.Len() {
		flags = append(flags, "values="+strings.Join(values, ","))
	}
	slices.SortFunc(flags, func(a, b string) int { return cmp.Compare(keyOf(a), keyOf(b)) })
	return form.Run{Spec: spec, Names: s.names, Args: append([]string{s.flags.listed.Name}, form.Dashed(flags)...)}
}

func keyOf(flag string) string {
	key, _, _ := strings.Cut(flag, "=")
	return key
}

// faultsOf returns the faults of a run that was found, except lies.
func faultsOf(found *explore.Run) (plan run.Plan) {
	last := make(map[parley.ID]int) // index of its crash
	for i := range found.Steps {
		s := &found.Steps[i]
		when := max(s.Time, 1)
		switch {
		case s.Kind == explore.OnCrash || s.Crashed:
			last[s.At] = len(plan.Crashes)
			plan.Crashes = append(plan.Crashes, sim.Crash{At: s.At, When: when, Effects: len(s.Effects)})
		case s.Kind == explore.OnRestart || s.Kind == explore.OnLostDisk:
			c := &plan.Crashes[last[s.At]]
			c.Back, c.LostDisk = max(when-c.When, 1), s.Kind == explore.OnLostDisk
		case s.Kind == explore.OnFalseSuspicion:
			plan.Suspicions = append(plan.Suspicions, sim.Suspicion{At: s.At, Of: s.Of, When: s.Time})
		}
	}
	return plan
}

// facts returns what the events of a run that was found do not show.
func (s *Search) facts(f *explore.Finding) trace.Facts {
	timed := s.protocol.Timing == parley.Synchronous || s.options.Model.InTime
	return trace.Facts{
		Over: f.Over, Network: f.RunConditions.Network, Processes: f.RunConditions.Processes,
		Explored: true, Stepped: !timed, Bare: s.bare,
	}
}

// Diagram draws a run that was found as text, and returns "" if that would be long: the steps in words say the same.
func (s *Search) Diagram(f *Counterexample, width int, color bool) string {
	const mostLines = 30
	o := term.SpaceTimeOptions{SpaceTimeOptions: reading.SpaceTimeOptions{Style: f.Run.Style(width)}}
	o.Color, o.Untimed = color, s.protocol.Timing != parley.Synchronous
	events := f.Log.Events
	if s.protocol.Timing != parley.Synchronous {
		events = OneByOne(events)
	}
	text := term.SpaceTime(s.protocol, events, o)
	if strings.Count(text, "\n") > mostLines {
		return ""
	}
	return text
}

// Picture draws a run that was found.
func (s *Search) Picture(f *Counterexample) ([]byte, error) {
	p := s.protocol
	const width = 100
	before := trace.Log{Events: f.Log.Events} // a panic
	if last := len(before.Events) - 1; last >= 0 && f.finding.Property == explore.NoPanic {
		before.Events = before.Events[:last]
	}
	v, err := report.NewView(f.report, f.Log, report.Options{Rows: 12}, width, func(id parley.ID) parley.Tree {
		m, _ := report.Replay(f.Run, &before, id) // as far as the machine survives
		return p.Tree(m)
	})
	if err != nil {
		return nil, err
	}
	if p.Timing == parley.Synchronous {
		return v.SVG(), nil
	}
	what := s.broken(f.finding)
	if what == f.finding.Property {
		what = "breaks " + what
	}
	return v.Found(OneByOne(f.Log.Events), "found by exploration: "+what, true), nil
}

// OneByOne gives each step of a run a time of its own, because many steps have the same time where nothing determines
// their order.
func OneByOne(events []trace.Event) []trace.Event {
	out, now := slices.Clone(events), parley.Tick(0)
	for i := range out {
		switch out[i].Op {
		case trace.Send, trace.Keep, trace.Deliver, trace.Indicate, trace.Append, trace.Start:
		default:
			now++
		}
		out[i].Time = now
	}
	return out
}

// Panics reports whether the run ends with the panic of a machine, so that no replay repeats it.
func (f *Counterexample) Panics() bool { return f.finding.Property == explore.NoPanic }

// Decision is what a correct process decides.
type Decision struct {
	Name    string
	Decides string // empty: nothing
}

// Decisions returns what each correct process decides, in their order.
func (f *Counterexample) Decisions() (all []Decision) {
	down := f.Run.Down()
	for id := range parley.ID(f.Run.Protocol.N) {
		if !down.Has(id) {
			name := f.Run.Names.Full(id)
			all = append(all, Decision{name, f.report.Decisions[name]})
		}
	}
	return all
}
