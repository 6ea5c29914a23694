package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley"
	"parley/explore"
	"parley/internal/draw"
)

// broken says what a run breaks, or comes to.
func (e *explored) broken(f *explore.Finding) string {
	switch {
	case f.Property == explore.NoPanic:
		return "a panic"
	case f.Property == "" && e.flags.goal != "":
		return e.goal.Says
	case f.Property == "" && e.flags.always != "":
		return "always: " + e.goal.Says
	case f.Property == "":
		return "eventually: " + e.goal.Says
	}
	return f.Property
}

// verdict says how the search ended, in one line, and what follows from that.
func (e *explored) verdict() []string {
	r := &e.report
	switch r.Outcome {
	case explore.Found:
		return e.foundVerdict()
	case explore.Exhausted:
		out := []string{"exhausted: " + e.holds()}
		if some := e.unpromised(); len(some) > 0 {
			out = append(out, "not promised in every run that there is: "+strings.Join(some, ", ")+
				"; --beyond-bound looks for runs that break them")
		}
		if m := e.options.Model; r.Ends == 0 && m.Timeouts == 0 && !m.InTime {
			out = append(out, "timers wait, and none may run out: --timeouts says how many may, or --in-time")
		}
		return out
	case explore.Interrupted:
		return []string{"interrupted: not proven: nothing was found so far", e.covered()}
	}
	out := []string{fmt.Sprintf("budget hit (--%s): not proven: nothing was found so far", r.Limit)}
	switch r.Limit {
	case "for":
		out = append(out, e.covered(), e.fewer())
	case "memory", "states":
		out = append(out, e.smaller(e.flags))
	}
	return out
}

// covered says how far a search came that ended early, and at what rate.
func (e *explored) covered() string {
	p := &e.report.Progress
	if e.split != nil {
		return fmt.Sprintf("covered: %s in %.1f s, %s a second, and %s of the last round",
			draw.Count(p.States, "beginning of a round", "beginnings of rounds"), p.Took.Seconds(),
			draw.Number(rate(*p)), draw.Count(p.Moves, "evaluation", "evaluations"))
	}
	return fmt.Sprintf("covered: %s in %.1f s, %s a second; %s wait to be visited",
		draw.Count(p.States, "state", "states"), p.Took.Seconds(), draw.Number(rate(*p)), draw.Number(p.Frontier))
}

// fewer names three flags that make a search smaller whose time was up, and how it goes on.
func (e *explored) fewer() string {
	return "to visit less: " + strings.Join(e.smallerAt("for"), "; ") + "; --for 0 has no limit"
}

// smallerAt are three ways to make a search smaller whose time was up; none after another limit.
func (e *explored) smallerAt(limit string) []string {
	if limit != "for" {
		return nil
	}
	ways := e.ways(e.flags)
	return ways[:min(3, len(ways))]
}

// holds says what is so if nothing was found anywhere.
func (e *explored) holds() string {
	switch f := e.flags; {
	case f.goal != "":
		return "no run comes to a state in which " + e.goal.Says
	case f.always != "":
		return "holds: in every state " + e.goal.Says
	case f.eventually != "":
		return "holds: at the end of every run " + e.goal.Says
	}
	var always, ends []string
	for _, q := range e.protocol.Properties {
		switch {
		case len(e.options.Only) > 0 && !slices.Contains(e.options.Only, q.Name):
		case q.Mode == parley.Always:
			always = append(always, q.Name)
		case q.Mode == parley.Eventually:
			ends = append(ends, q.Name)
		}
	}
	where := "wherever it is promised"
	if e.options.Beyond {
		where = "promised or not"
	}
	var held []string
	if len(always) > 0 {
		held = append(held, strings.Join(always, ", "))
	}
	if n := e.report.Ends; n > 0 && len(ends) > 0 {
		held = append(held, "at "+draw.Count(n, "end", "ends")+" "+strings.Join(ends, ", "))
	}
	var parts []string
	if len(held) > 0 {
		parts = append(parts, "holds: "+where+", "+strings.Join(held, ", and "))
	}
	if e.report.Ends == 0 && len(ends) > 0 { // a timer waits in every state, and may not run out
		parts = append(parts, "nothing is said of "+strings.Join(ends, ", ")+", for no run comes to an end")
	}
	return strings.Join(parts, "; ")
}

// unpromised are the properties that count only in some of the runs: those of which
// nothing is promised if all goes wrong that may, with the reasons.
func (e *explored) unpromised() (out []string) {
	o := &e.options
	if e.report.Outcome != explore.Exhausted || o.Goal != nil || o.Beyond {
		return nil
	}
	m, p := &o.Model, e.protocol
	timed := p.Timing == parley.Synchronous || m.InTime
	a := parley.Assumptions{N: p.N, M: p.M, Faulty: min(len(e.begins.liars[0])+m.Crashes, p.N)}
	// order: the worst is looked for
	for _, how := range e.begins.liars[0] {
		a.Worst = max(a.Worst, how.Model)
	}
	a.Network = parley.NetworkFaults{
		Lost: m.Losses > 0, Doubled: m.Doubles > 0, Reordered: !m.FIFO && !timed, Late: !timed && m.Timeouts > 0,
	}
	a.Processes = parley.ProcessFaults{
		Restarted: m.Restarts > 0, LostDisk: m.LostDisks > 0, Suspected: m.FalseSuspicions > 0,
		Minority: 2*(p.N-a.Faulty) <= p.N,
	}
	var reasons []string
	of := make(map[string][]string)
	for _, v := range parley.Judge(p, a, &parley.History{N: p.N}) {
		looked := len(o.Only) == 0 || slices.Contains(o.Only, v.Property.Name)
		if why := v.Promise.Because; looked && v.Property.Mode != parley.Sometimes && !v.Promise.Holds {
			if of[why] = append(of[why], v.Property.Name); len(of[why]) == 1 {
				reasons = append(reasons, why)
			}
		}
	}
	for _, why := range reasons {
		out = append(out, draw.And(of[why])+" ("+why+")")
	}
	return out
}

// foundVerdict says what was found.
func (e *explored) foundVerdict() []string {
	f := e.found[0]
	var out []string
	switch {
	case f.finding.Property == "" && e.flags.goal != "":
		out = append(out, "found: "+e.goal.Says)
	case f.finding.Property == "":
		out = append(out, "violated: "+e.broken(f.finding))
	case f.finding.Property == explore.NoPanic:
		out = append(out, "violated: "+f.why)
	case f.finding.Promised:
		out = append(out, fmt.Sprintf("violated: %s: %s", f.finding.Property, f.why))
	default:
		out = append(out, fmt.Sprintf("found: %s breaks, which is not promised: %s", f.finding.Property, f.why))
	}
	if !e.told() {
		out = append(out, "interrupted before the run was put together: the same command finds it again")
	}
	if more := e.others(); more != "" {
		out = append(out, more)
	}
	switch limit := e.report.Limit; {
	case !e.options.All: // it ended with what was found
	case e.interrupted:
		out = append(out, "interrupted: there may be more")
	case limit != "":
		out = append(out, fmt.Sprintf("budget hit (--%s): there may be more", limit))
	}
	return out
}

// others counts what was found beside the first.
func (e *explored) others() string {
	const kept = 100
	counts := make(map[string]uint64)
	for _, f := range e.report.Findings[1:] {
		counts[e.broken(&f)]++
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, what+" ("+draw.Count(counts[what], "time", "times")+")")
	}
	switch n := len(e.report.Findings); {
	case n < 2:
		return ""
	case n == kept:
		parts = append(parts, "and maybe more")
	}
	return "found beside it: " + strings.Join(parts, ", ")
}
