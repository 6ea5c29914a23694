package explore

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"parley"
	runs "parley/cli/run"
	"parley/cli/show"
	"parley/explore"
	"parley/internal/draw"
	"parley/internal/draw/reading"
	"parley/internal/draw/svg"
	"parley/internal/scenario"
	"parley/run"
	"parley/sim"
	"parley/trace"
)

// foundRun is a run that was found, as a run that was simulated: with a log and a header
// that say all about it.
type foundRun struct {
	finding *explore.Finding
	run     show.Run
	header  trace.Header
	log     *trace.Log
	report  *show.Report
	depth   int    // of the search
	why     string // what broke, with the names of the reader
	story   []string
}

// retold is a run that was found, as a run that was simulated.
func (s *search) retold(finding *explore.Finding) (*foundRun, error) {
	r, err := s.asRun(&finding.Run)
	if err != nil {
		return nil, err
	}
	f := &foundRun{finding: finding, log: finding.Run.Log(true), why: finding.Why}
	for _, step := range finding.Run.Steps {
		if step.What != explore.Start && (step.What != explore.Asking || s.protocol.Timing != parley.Synchronous) {
			f.depth++
		}
	}
	facts := s.facts(finding)
	r.Protocol = s.protocol
	f.run, f.header = r, r.Header(facts)
	f.report = show.NewReport(r, f.log, facts)
	for _, v := range f.report.Judged { // a split search calls processes by their numbers
		if v.Property.Name == finding.Property && v.Broken != nil {
			f.why = v.Broken.Error()
		}
	}
	f.why = strings.ReplaceAll(f.why, "\n", " ") // of a panic
	f.story = reading.Story(s.protocol, f.log.Events, r.Style(0))
	return f, nil
}

// asRun says with the flags of "parley run" who lies, what is asked and what befalls the
// processes of a run.
func (s *search) asRun(found *explore.Run) (show.Run, error) {
	root := s.options.Roots[found.Root]
	p := s.flags.listed
	fs := pflag.NewFlagSet(p.Name, pflag.ContinueOnError)
	f := runs.NewFlags(p, fs)
	sets := []string{"names=" + string(s.names), fmt.Sprintf("memory=%d", s.flags.memory)}
	for _, name := range s.flags.own {
		if g := s.flags.fs.Lookup(name); g.Changed {
			sets = append(sets, name+"="+g.Value.String())
		}
	}
	if s.flags.beyond {
		sets = append(sets, "beyond-bound=true")
	}
	var liars []string
	for id := range parley.ID(s.protocol.N) {
		how, lies := root.Faulty[id]
		switch {
		case lies && atWill(how): // which is that where everything is drawn
			liars = append(liars, s.names.Bare(id)+"=random")
		case lies:
			liars = append(liars, s.names.Bare(id)+"="+how.Name)
		}
	}
	if len(liars) > 0 {
		sets = append(sets, "faulty="+strings.Join(liars, ","))
	}
	plan, values := befallen(found), []string(nil)
	for _, q := range root.Requests {
		if q.Msg.Kind == parley.Propose && !strings.Contains(string(q.Msg.Body), ",") {
			values = append(values, string(q.Msg.Body))
			continue
		}
		plan.Requests = append(plan.Requests, sim.Request{At: q.At, Msg: q.Msg})
	}
	if len(values) > 0 && len(values) == s.protocol.Proposers.Len() {
		sets = append(sets, "values="+strings.Join(values, ","))
	}
	for _, set := range append(sets, scenario.Flags(plan, s.protocol, s.names.Bare)...) {
		name, value, _ := strings.Cut(set, "=")
		if fs.Lookup(name) == nil {
			continue // fifo, of which a protocol may have its own
		}
		if err := fs.Set(name, value); err != nil {
			return show.Run{}, err
		}
	}
	return f.Run()
}

// befallen is what befalls the processes of a run that was found, beside lies.
func befallen(found *explore.Run) (plan run.Plan) {
	last := make(map[parley.ID]int) // crash
	for i := range found.Steps {
		s := &found.Steps[i]
		when := max(s.Time, 1)
		switch {
		case s.What == explore.Crash || s.Crashed:
			last[s.At] = len(plan.Crashes)
			plan.Crashes = append(plan.Crashes, sim.Crash{At: s.At, When: when, Effects: len(s.Effects)})
		case s.What == explore.Restart || s.What == explore.LostDisk:
			c := &plan.Crashes[last[s.At]]
			c.Back, c.LostDisk = max(when-c.When, 1), s.What == explore.LostDisk
		case s.What == explore.Slander:
			plan.Suspicions = append(plan.Suspicions, sim.Suspicion{At: s.At, Of: s.Of, When: s.Time})
		}
	}
	return plan
}

// facts are what no event of a run that was found tells.
func (s *search) facts(f *explore.Finding) trace.Facts {
	timed := s.protocol.Timing == parley.Synchronous || s.options.Model.InTime
	return trace.Facts{
		Over: f.Over, Network: f.Assumptions.Network, Processes: f.Assumptions.Processes,
		Explored: true, Stepped: !timed, Bare: s.bare,
	}
}

// picture draws a run that was found.
func (s *search) picture(f *foundRun) ([]byte, error) {
	p := s.protocol
	const width = 100
	if p.Timing == parley.Synchronous {
		before := trace.Log{Events: f.log.Events} // a panic
		if last := len(before.Events) - 1; last >= 0 && f.finding.Property == explore.NoPanic {
			before.Events = before.Events[:last]
		}
		v, err := show.NewView(f.report, f.log, show.Flags{Rows: 12}, width, func(id parley.ID) parley.Tree {
			return p.Tree(show.Replay(f.run, &before, id))
		})
		if err != nil {
			return nil, err
		}
		return v.SVG(), nil
	}
	title := strings.ToUpper(p.Title[:1]) + p.Title[1:]
	below := fmt.Sprintf("n = %d, m = %d: %s", p.N, p.M, s.broken(f.finding))
	o := reading.SpaceTimeOptions{Style: f.run.Style(width)}
	return svg.File(draw.SpaceTime(p, oneByOne(f.log.Events), o, title, below)), nil
}

// oneByOne gives each step of a run a time of its own: much happens at the same time
// where nothing tells apart what comes first.
func oneByOne(events []trace.Event) []trace.Event {
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
