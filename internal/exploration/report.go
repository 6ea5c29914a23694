package exploration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley"
	"parley/explore"
	"parley/explore/split"
	"parley/internal/draw/prose"
	"parley/internal/lists"
)

// Result is the result of a search.
type Result struct {
	*Search
	report      explore.Report
	split       *split.Report // of --step split
	found       []*Counterexample
	interrupted bool
}

// Run makes the search, and a counterexample of each run that it finds. If ctx ends first, the result covers the search
// so far. progress may be nil.
func Run(ctx context.Context, s *Search, progress func(explore.Progress)) (*Result, error) {
	s.options.Progress = progress
	e := &Result{Search: s}
	var err error
	if s.flags.step == "split" {
		if e.report, e.split, err = splitLast(ctx, s.options); err != nil {
			err = parley.FlagErrorf("step", "%w: use --step round", err)
		}
	} else {
		e.report, err = explore.Search(ctx, s.options)
	}
	if of, ok := errors.AsType[*explore.NotAlikeError](err); ok {
		err = parley.FlagErrorf("symmetry", "%s and %s do not get the same requests: name processes that do",
			s.names.Full(of.A), s.names.Full(of.B))
	}
	if err != nil {
		return nil, err
	}
	e.addCounterexamples(ctx)
	e.interrupted = ctx.Err() != nil
	return e, nil
}

// splitLast searches by rounds, and splits the last round by receiver. Its report has the results that such a search
// yields.
func splitLast(ctx context.Context, o explore.Options) (explore.Report, *split.Report, error) {
	of, err := split.Search(ctx, o)
	if err != nil {
		return explore.Report{}, nil, err
	}
	r := explore.Report{Outcome: of.Outcome, Runs: of.Runs, Ends: of.Histories, Limit: of.Limit, Judged: of.Judged}
	r.States, r.Moves, r.Took = of.Stages, of.Evaluations, of.Took
	r.Findings = lists.Of(of.Findings, func(f split.Finding) explore.Finding { return f.Finding })
	return r, &of, nil
}

// Outcome says how the search ended.
func (e *Result) Outcome() explore.Outcome { return e.report.Outcome }

// Found returns the first counterexample, or nil. There is none if the search was interrupted before one was made.
func (e *Result) Found() *Counterexample {
	if len(e.found) == 0 || e.found[0].Log == nil {
		return nil
	}
	return e.found[0]
}

// addCounterexamples makes counterexamples of the runs that were found, until the context ends.
func (e *Result) addCounterexamples(ctx context.Context) {
	for i := range e.report.Findings {
		if f := &e.report.Findings[i]; ctx.Err() != nil || len(f.Run.Steps) == 0 {
			e.found = append(e.found, &Counterexample{finding: f, why: f.Why})
		} else {
			e.found = append(e.found, e.counterexample(f))
		}
	}
}

// Counted returns the counts of the search.
func (e *Result) Counted() []string {
	if e.split != nil {
		return e.countedSplit()
	}
	r := &e.report
	first := fmt.Sprintf("%s, %s, %s, in %.1f s", prose.Count(r.States, "state", "states"),
		prose.Count(r.Moves, "transition", "transitions"), prose.Count(r.Ends, "terminal state", "terminal states"),
		r.Took.Seconds())
	if e.options.Order == explore.BreadthFirst {
		first += ", depth " + prose.Number(uint64(r.Depth))
	}
	if e.options.Order == explore.RandomOrder {
		return append([]string{fmt.Sprintf("%s, %s, in %.1f s", prose.Count(r.Moves, "transition", "transitions"),
			prose.Count(r.Ends, "complete run", "complete runs"), r.Took.Seconds()), e.never()}, e.unseen()...)
	}
	if r.Runs > 0 {
		first = prose.Count(r.Runs, "adversary", "adversaries") + ", " + first
	}
	return append([]string{first, e.sure(), e.never()}, e.unseen()...)
}

// countedSplit returns the counts of a split search.
func (e *Result) countedSplit() []string {
	r := e.split
	who := prose.Count(r.Runs, "adversary", "adversaries")
	if e.options.All {
		who += ", of which " + prose.Number(r.Broken) + " break a property"
	}
	return []string{fmt.Sprintf("%s, %s, %s of the last round, %s checked, in %.1f s", who,
		prose.Count(r.Stages, "state at the start of a round", "states at the start of a round"),
		prose.Count(r.Evaluations, "evaluation", "evaluations"), prose.Count(r.Histories, "history", "histories"),
		r.Took.Seconds())}
}

// unseen names the properties of mode Sometimes that held in no state: all others may hold only because nothing
// happens. For a search that ended early it returns nothing.
func (e *Result) unseen() []string {
	if e.options.Goal != nil || e.report.Outcome == explore.Found && !e.options.All {
		return nil
	}
	var out []string
	for _, q := range e.protocol.Properties {
		if q.Mode == parley.Sometimes && !slices.Contains(e.report.Seen, q.Name) {
			never := "never seen"
			if e.report.Outcome != explore.Exhausted {
				never = "not seen so far"
			}
			out = append(out, fmt.Sprintf("%s: %s (%s)", never, q.Name, q.Says))
		}
	}
	return out
}

// sure says how many states are expected to be overlooked, and the memory per state if that is meaningful.
func (e *Result) sure() string {
	r := &e.report
	text := fmt.Sprintf("expected number of states overlooked because of equal fingerprints: %.1g", r.Overlooked)
	const telling = 500_000 // states: with fewer, most of the memory is empty
	if r.States >= telling {
		text += fmt.Sprintf("; %.1f bytes per state, %s states per second", float64(r.Bytes)/float64(r.States),
			prose.Number(Rate(r.Progress)))
	}
	return text
}

// never names the clauses that were never executed although the model allows them.
func (e *Result) never() string {
	var parts []string
	for _, c := range e.report.Clauses {
		m := e.options.Model
		switch {
		case c.Runs > 0, c.Name == "restart" && m.Restarts == 0,
			c.Name == "suspicion" && m.FalseSuspicions == 0 && (!m.Detect || m.Crashes == 0):
		default:
			parts = append(parts, c.Name)
		}
	}
	switch {
	case len(parts) == 0:
		return "every kind of message and event was handled"
	case e.report.Outcome != explore.Exhausted:
		return "not handled so far: " + strings.Join(parts, ", ")
	}
	return "never handled: " + strings.Join(parts, ", ")
}

// Heading returns the line above a counterexample.
func (e *Result) Heading() string {
	text := "A run"
	if e.options.Order == explore.BreadthFirst && e.split == nil {
		text = "The shortest run"
	}
	switch {
	case e.found[0].finding.Property == explore.NoPanic:
		text += " in which a machine panics"
	case e.aim != "":
		text += " to such a state"
	default:
		text += " that breaks " + e.found[0].finding.Property
	}
	if e.options.Step == explore.Messages {
		text += ", " + prose.Count(uint64(e.found[0].depth), "transition", "transitions")
	}
	if len(e.found[0].Run.Faulty) > 0 {
		text += "; ✗ marks faulty processes"
	}
	return text + ":"
}

// limit returns the budget that ended the search, or "".
func (e *Result) limit() string {
	if e.report.Outcome == explore.Found && !e.options.All {
		return ""
	}
	return e.report.Limit
}

// Output is the outcome of a search, as "parley explore --json" prints it.
type Output struct {
	Protocol   string           `json:"protocol"`
	N          int              `json:"n"`
	M          int              `json:"m"`
	Model      []string         `json:"model"`
	Outcome    string           `json:"outcome"`
	Limit      string           `json:"limit,omitempty"`
	Smaller    []string         `json:"smaller,omitempty"`
	Seen       []string         `json:"seen"`
	Verdict    string           `json:"verdict"`
	Judged     []explore.Judged `json:"judged"`
	States     uint64           `json:"states"`
	Moves      uint64           `json:"moves"`
	Depth      int              `json:"depth"`
	Ends       uint64           `json:"ends"`
	Runs       uint64           `json:"adversaries,omitempty"`
	Bytes      uint64           `json:"bytes"`
	Overlooked float64          `json:"overlooked"`
	Seconds    float64          `json:"wall_seconds"`
	Findings   []finding        `json:"findings"`
	Clauses    []clause         `json:"clauses"`
}

type finding struct {
	Property string   `json:"property,omitempty"`
	Why      string   `json:"why,omitempty"`
	Promised bool     `json:"promised"`
	Moves    int      `json:"moves"`
	Story    []string `json:"story"`
}

type clause struct {
	Name string `json:"name"`
	Runs uint64 `json:"runs"`
}

// Output returns the outcome for programs.
func (e *Result) Output() Output {
	r := &e.report
	out := Output{
		Protocol: e.protocol.Name, N: e.protocol.N, M: e.protocol.M, Model: e.Model(), Outcome: r.Outcome.String(),
		Limit: e.limit(), Smaller: e.smallerAt(e.limit()), Seen: append([]string{}, r.Seen...), Verdict: e.Verdict()[0],
		Judged: append([]explore.Judged{}, r.Judged...),
		States: r.States, Moves: r.Moves, Depth: r.Depth, Ends: r.Ends, Runs: r.Runs,
		Bytes: r.Bytes, Overlooked: r.Overlooked, Seconds: r.Took.Seconds(), Findings: []finding{},
	}
	for i, f := range r.Findings {
		is := e.found[i]
		out.Findings = append(out.Findings, finding{f.Property, is.why, f.Promised, is.depth, is.Story})
	}
	out.Clauses = lists.Of(r.Clauses, func(c explore.Clause) clause { return clause{c.Name, c.Runs} })
	return out
}

// Rate returns the number of states visited per second.
func Rate(p explore.Progress) uint64 { return uint64(float64(p.States) / max(p.Took.Seconds(), 1e-3)) }

// Counterexample returns the counterexample of one finding of the output, or nil if none was made.
func (e *Result) Counterexample(i int) *Counterexample {
	if i >= len(e.found) || e.found[i].Log == nil {
		return nil
	}
	return e.found[i]
}
