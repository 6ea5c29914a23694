package cli

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"parley"
	"parley/cli/console"
	"parley/explore"
	"parley/internal/draw"
)

// explored is a search that has been made.
type explored struct {
	*exploring
	*console.App
	flags       *exploreFlags
	report      explore.Report
	split       *explore.SplitReport // of --step split
	found       []*foundRun
	interrupted bool
}

// status is the exit status.
func (e *explored) status() int {
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

// told tells whether there is a story of what was found. There is none if the search was
// interrupted before it was put together.
func (e *explored) told() bool { return len(e.found) > 0 && e.found[0].log != nil }

// print writes the outcome for people.
func (e *explored) print(w io.Writer) error {
	width := e.Width(e.flags.width)
	var parts []string
	add := func(lines ...string) {
		for i := range lines {
			lines[i] = draw.Fold(lines[i], width)
		}
		parts = append(parts, strings.Join(lines, "\n")+"\n")
	}
	add(e.explored()...)
	add(e.counted()...)
	if e.told() {
		lines := []string{e.heading()}
		for i, line := range e.found[0].story {
			lines = append(lines, fmt.Sprintf("%4d  %s", i+1, line))
		}
		add(lines...)
	}
	end := e.verdict()
	switch {
	case !e.told() && e.flags.traceTo+e.flags.svg != "":
		end = append(end, "no run was found: there is none to write down")
	case e.flags.traceTo == console.StandardOutput:
	case e.flags.traceTo != "" && e.found[0].finding.Property == explore.NoPanic: // as a replay would
		end = append(end, "to see the run: parley trace show "+console.Quote(e.flags.traceTo))
	case e.flags.traceTo != "":
		end = append(end, "to see the run: parley run --replay "+console.Quote(e.flags.traceTo))
	}
	add(end...)
	_, err := io.WriteString(w, strings.Join(parts, "\n"))
	return err
}

// explored says what was explored: the model, in words.
func (e *explored) explored() []string {
	p := e.protocol
	size := fmt.Sprintf("n = %d processes, m = %d", p.N, p.M)
	if p.Bound != nil && p.Bound(p.N, p.M) != nil {
		size += ": beyond the bound"
	}
	out := []string{p.Name + ": " + p.Title, size, e.liars()}
	if asked := e.asked(); asked != "" {
		out = append(out, asked)
	}
	return append(out, e.wrongs(), e.way())
}

// liars says who lies, and how.
func (e *explored) liars() string {
	all := e.begins.liars
	if len(all[0]) == 0 {
		return "nobody lies"
	}
	if !e.begins.chosen {
		lie := "lie"
		if len(all[0]) == 1 {
			lie = "lies"
		}
		return fmt.Sprintf("%d of the %d processes %s, %s: all %s are tried", len(all[0]),
			e.protocol.N, lie, e.anyway(), draw.Count(uint64(len(all)), "choice", "choices"))
	}
	var parts []string
	for id := range parley.ID(e.protocol.N) {
		if how, lies := all[0][id]; lies && atWill(how) {
			parts = append(parts, e.names.Full(id)+" ("+e.anyway()+")")
		} else if lies {
			parts = append(parts, e.names.Full(id)+" ("+how.Name+")")
		}
	}
	return "faulty: " + strings.Join(parts, ", ")
}

// anyway says how liars lie of whom nothing else is said.
func (e *explored) anyway() string {
	if e.flags.outspoken {
		return "in any way but silence"
	}
	return "in any way there is"
}

// asked says what is asked of whom.
func (e *explored) asked() string {
	var parts []string
	if open := e.protocol.Proposers.Minus(e.begins.fixed); open != (parley.Set{}) {
		var who []string
		for id := range open.All() {
			who = append(who, e.names.Full(id))
		}
		verb := " proposes "
		if len(who) > 1 {
			verb = " each propose "
		}
		parts = append(parts, draw.And(who)+verb+strings.Join(e.begins.values, " or "))
	}
	style := draw.Style{Name: e.names.Full, Width: 1 << 12}
	for _, q := range e.begins.asked {
		parts = append(parts, e.names.Full(q.At)+" "+draw.Asked(style, e.protocol, q.Msg))
	}
	if n := len(e.begins.roots); n > 1 {
		parts = append(parts, fmt.Sprintf("%s ways to begin in all", draw.Number(uint64(n))))
	}
	return strings.Join(parts, "; ")
}

// usual is the delay of messages where a protocol relies on none of its own.
const usual parley.Tick = 900

// wrongs says what may go wrong beside lies.
func (e *explored) wrongs() string {
	m := e.options.Model
	links := "messages arrive in any order"
	switch {
	case e.protocol.Timing == parley.Synchronous:
		links = "what is sent in a round arrives in it"
	case m.FIFO:
		links = "each link keeps the order of its messages"
	}
	if m.InTime {
		links += fmt.Sprintf(", within %s ticks", draw.Number(uint64(cmp.Or(e.protocol.Relies.Delay, usual))))
	}
	var most []string
	for _, one := range []struct {
		n          int
		word, many string
	}{
		{m.Crashes, "crash", "crashes"}, {m.Restarts, "restart", "restarts"}, {m.LostDisks, "lost disk", "lost disks"},
		{m.Losses, "lost message", "lost messages"}, {m.Doubles, "doubled message", "doubled messages"},
		{m.FalseSuspicions, "false suspicion", "false suspicions"}, {m.Timeouts, "timeout", "timeouts"},
	} {
		if one.n > 0 {
			most = append(most, draw.Count(uint64(one.n), one.word, one.many))
		}
	}
	text := links + "; nothing else goes wrong"
	if len(most) > 0 {
		text = links + "; at most " + strings.Join(most, ", ")
	}
	if m.Detect && m.Crashes > 0 {
		text += "; processes are told of a crash when what was sent there has arrived"
		if m.Overtaking {
			text = strings.TrimSuffix(text, "when what was sent there has arrived") +
				"at any time after it, even before what was sent there arrives"
		}
	}
	return text
}

// way says how the search was made, and for what.
func (e *explored) way() string {
	text := "a step is a message"
	if e.options.Step == explore.Rounds {
		text = "a step is a round"
	}
	if e.split != nil {
		return text + ", and the last is split by receiver; " + e.searchedFor()
	}
	switch e.options.Order {
	case explore.BreadthFirst:
		text += "; breadth first"
	case explore.DepthFirst:
		text += "; depth first"
	case explore.RandomOrder:
		text += fmt.Sprintf("; %s at random", draw.Count(uint64(e.options.Walks), "run", "runs"))
	}
	if e.options.Depth > 0 {
		text += fmt.Sprintf("; at most %s deep", draw.Count(uint64(e.options.Depth), "step", "steps"))
	}
	return text + "; " + e.searchedFor()
}

// searchedFor says what is searched for.
func (e *explored) searchedFor() string {
	switch f := e.flags; {
	case f.goal != "":
		return "a state is searched in which " + e.goal.Says
	case f.always != "":
		return "a state is searched in which this is not so: " + e.goal.Says
	case f.eventually != "":
		return "an end is searched at which this is not so: " + e.goal.Says
	}
	text := "a broken promise is searched for"
	if e.options.Beyond {
		text = "a property that breaks is searched for, promised or not"
	}
	if len(e.options.Only) > 0 {
		text += ", of " + strings.Join(e.options.Only, ", ")
	}
	return text
}

// counted says what the search came across.
func (e *explored) counted() []string {
	if e.split != nil {
		return e.countedSplit()
	}
	r := &e.report
	first := fmt.Sprintf("%s, %s, %s, in %.1f s", draw.Count(r.States, "state", "states"),
		draw.Count(r.Moves, "move", "moves"), draw.Count(r.Ends, "end", "ends"), r.Took.Seconds())
	if e.options.Order == explore.BreadthFirst {
		first += fmt.Sprintf(", %s deep", draw.Number(uint64(r.Depth)))
	}
	if e.options.Order == explore.RandomOrder {
		return append([]string{fmt.Sprintf("%s, %s, in %.1f s", draw.Count(r.Moves, "move", "moves"),
			draw.Count(r.Ends, "run to its end", "runs to their ends"), r.Took.Seconds()), e.never()}, e.unseen()...)
	}
	if r.Runs > 0 {
		first = draw.Count(r.Runs, "adversary", "adversaries") + ", " + first
	}
	return append([]string{first, e.sure(), e.never()}, e.unseen()...)
}

// unseen names the properties that are to hold sometimes, and did in no state: what holds
// everywhere may do so because nothing happens. A search that ended early says nothing.
func (e *explored) unseen() []string {
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

// sure says how well the states were told apart, and at what cost where that shows.
func (e *explored) sure() string {
	r := &e.report
	text := fmt.Sprintf("to be expected: %.1g states overlooked, for sharing a fingerprint with another", r.Overlooked)
	const telling = 500_000 // states: of fewer most of the memory is empty
	if r.States >= telling {
		text += fmt.Sprintf("; %.1f bytes a state, %s states a second", float64(r.Bytes)/float64(r.States),
			draw.Number(rate(r.Progress)))
	}
	return text
}

// never says what machines were never given, of what there is in the model.
func (e *explored) never() string {
	var parts []string
	for _, c := range e.report.Clauses {
		m := e.options.Model
		switch {
		case c.Runs > 0, c.Name == "restart" && m.Restarts == 0,
			c.Name == "told of a suspicion" && m.FalseSuspicions == 0 && (!m.Detect || m.Crashes == 0):
		default:
			parts = append(parts, c.Name)
		}
	}
	switch {
	case len(parts) == 0:
		return "every clause was executed"
	case e.report.Outcome != explore.Exhausted:
		return "not executed so far: " + strings.Join(parts, ", ")
	}
	return "never executed: " + strings.Join(parts, ", ")
}

// heading says what run is told.
func (e *explored) heading() string {
	text := "A run"
	if e.options.Order == explore.BreadthFirst && e.split == nil {
		text = "The shortest run"
	}
	switch {
	case e.found[0].finding.Property == explore.NoPanic:
		text += " in which a machine panics"
	case e.flags.goal != "":
		text += " to such a state"
	default:
		text += " that breaks it"
	}
	if e.options.Step == explore.Messages {
		text += ", " + draw.Count(uint64(e.found[0].depth), "move", "moves") + " deep"
	}
	if len(e.found[0].run.Faulty) > 0 {
		text += "; who lies has a ✗"
	}
	return text + ":"
}

// limit is the budget that ended the search, if one did.
func (e *explored) limit() string {
	if e.report.Outcome == explore.Found && !e.options.All {
		return ""
	}
	return e.report.Limit
}

// printJSON prints the outcome as one object.
func (e *explored) printJSON() error {
	type clause struct {
		Name string `json:"name"`
		Runs uint64 `json:"runs"`
	}
	type finding struct {
		Property string   `json:"property,omitempty"`
		Why      string   `json:"why,omitempty"`
		Promised bool     `json:"promised"`
		Moves    int      `json:"moves"`
		Story    []string `json:"story"`
	}
	r := &e.report
	out := struct {
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
	}{
		Protocol: e.protocol.Name, N: e.protocol.N, M: e.protocol.M, Model: e.explored(), Outcome: r.Outcome.String(),
		Limit: e.limit(), Smaller: e.smallerAt(e.limit()), Seen: append([]string{}, r.Seen...), Verdict: e.verdict()[0],
		Judged: append([]explore.Judged{}, r.Judged...),
		States: r.States, Moves: r.Moves, Depth: r.Depth, Ends: r.Ends, Runs: r.Runs,
		Bytes: r.Bytes, Overlooked: r.Overlooked, Seconds: r.Took.Seconds(), Findings: []finding{},
	}
	for i, f := range r.Findings {
		is := e.found[i]
		out.Findings = append(out.Findings, finding{f.Property, is.why, f.Promised, is.depth, is.story})
	}
	for _, c := range r.Clauses {
		out.Clauses = append(out.Clauses, clause{c.Name, c.Runs})
	}
	return e.PrintEscaped(out)
}
