package explore

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"parley"
	"parley/cli/console"
	"parley/explore"
	"parley/explore/split"
	"parley/internal/draw/prose"
	"parley/internal/input"
	"parley/internal/lists"
)

// result is the result of a search.
type result struct {
	*search
	*console.App
	report      explore.Report
	split       *split.Report // of --step split
	found       []*counterexample
	interrupted bool
}

// status returns the exit status.
func (e *result) status() int {
	switch e.report.Outcome {
	case explore.Exhausted:
		return console.Fine
	case explore.Found:
		return console.Violated
	case explore.Interrupted:
		return console.Interrupted
	}
	return console.Unfinished
}

// hasCounterexample reports whether the result includes a counterexample with a log. It has none if the search was
// interrupted before one was made.
func (e *result) hasCounterexample() bool { return len(e.found) > 0 && e.found[0].log != nil }

// addCounterexamples makes counterexamples of the runs that were found, until the context ends.
func (e *result) addCounterexamples(ctx context.Context) {
	for i := range e.report.Findings {
		if f := &e.report.Findings[i]; ctx.Err() != nil || len(f.Run.Steps) == 0 {
			e.found = append(e.found, &counterexample{finding: f, why: f.Why})
		} else {
			e.found = append(e.found, e.counterexample(f))
		}
	}
}

// write writes the trace and the picture of the counterexample to the requested files.
func (e *result) write() error {
	if !e.hasCounterexample() {
		return nil
	}
	if err := e.WriteTrace(e.flags.traceTo, e.found[0].header, e.found[0].log); err != nil {
		return err
	}
	if e.flags.svg == "" {
		return nil
	}
	picture, err := e.picture(e.found[0])
	if err != nil {
		return err
	}
	return e.WriteFile(console.OutputFile{Flag: "svg", Name: e.flags.svg}, picture)
}

// print writes the outcome as text.
func (e *result) print(w io.Writer) error {
	width := e.Width(e.flags.width)
	var parts []string
	add := func(lines ...string) {
		for i := range lines {
			lines[i] = prose.Fold(lines[i], width)
		}
		parts = append(parts, strings.Join(lines, "\n")+"\n")
	}
	add(e.model()...)
	add(e.counted()...)
	if e.hasCounterexample() {
		if diagram := e.diagram(e.found[0], width, e.Colors()); diagram != "" {
			parts = append(parts, diagram)
		}
		lines := []string{e.heading()}
		for i, line := range e.found[0].story {
			lines = append(lines, fmt.Sprintf("%4d  %s", i+1, line))
		}
		add(lines...)
	}
	end := e.verdict()
	switch {
	case !e.hasCounterexample() && e.flags.traceTo+e.flags.svg != "":
		end = append(end, "no run was found, so no trace or picture was written")
	case e.flags.traceTo == console.StandardOutput:
	case e.flags.traceTo != "" && e.found[0].finding.Property == explore.NoPanic: // a replay would panic as well
		end = append(end, "to see the run: parley trace show "+input.Quote(e.flags.traceTo))
	case e.flags.traceTo != "":
		end = append(end, "to see the run: parley run --replay "+input.Quote(e.flags.traceTo))
	}
	add(end...)
	_, err := io.WriteString(w, strings.Join(parts, "\n"))
	return err
}

// counted returns the counts of the search.
func (e *result) counted() []string {
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
func (e *result) countedSplit() []string {
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
func (e *result) unseen() []string {
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
func (e *result) sure() string {
	r := &e.report
	text := fmt.Sprintf("expected number of states overlooked because of equal fingerprints: %.1g", r.Overlooked)
	const telling = 500_000 // states: with fewer, most of the memory is empty
	if r.States >= telling {
		text += fmt.Sprintf("; %.1f bytes per state, %s states per second", float64(r.Bytes)/float64(r.States),
			prose.Number(rate(r.Progress)))
	}
	return text
}

// never names the clauses that were never executed although the model allows them.
func (e *result) never() string {
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

// heading returns the line above a counterexample.
func (e *result) heading() string {
	text := "A run"
	if e.options.Order == explore.BreadthFirst && e.split == nil {
		text = "The shortest run"
	}
	switch {
	case e.found[0].finding.Property == explore.NoPanic:
		text += " in which a machine panics"
	case e.aim == "goal":
		text += " to such a state"
	default:
		text += " that breaks it"
	}
	if e.options.Step == explore.Messages {
		text += ", " + prose.Count(uint64(e.found[0].depth), "transition", "transitions")
	}
	if len(e.found[0].run.Faulty) > 0 {
		text += "; ✗ marks faulty processes"
	}
	return text + ":"
}

// limit returns the budget that ended the search, or "".
func (e *result) limit() string {
	if e.report.Outcome == explore.Found && !e.options.All {
		return ""
	}
	return e.report.Limit
}

// exploreOutput is the JSON output of "parley explore".
type exploreOutput struct {
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

// printJSON prints the outcome as one object.
func (e *result) printJSON() error {
	r := &e.report
	out := exploreOutput{
		Protocol: e.protocol.Name, N: e.protocol.N, M: e.protocol.M, Model: e.model(), Outcome: r.Outcome.String(),
		Limit: e.limit(), Smaller: e.smallerAt(e.limit()), Seen: append([]string{}, r.Seen...), Verdict: e.verdict()[0],
		Judged: append([]explore.Judged{}, r.Judged...),
		States: r.States, Moves: r.Moves, Depth: r.Depth, Ends: r.Ends, Runs: r.Runs,
		Bytes: r.Bytes, Overlooked: r.Overlooked, Seconds: r.Took.Seconds(), Findings: []finding{},
	}
	for i, f := range r.Findings {
		is := e.found[i]
		out.Findings = append(out.Findings, finding{f.Property, is.why, f.Promised, is.depth, is.story})
	}
	out.Clauses = lists.Of(r.Clauses, func(c explore.Clause) clause { return clause{c.Name, c.Runs} })
	return e.PrintJSON(out)
}
