package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley"
	"parley/explore"
	"parley/faulty"
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
		if m := e.options.Model; r.Ends == 0 && m.Timeouts == 0 && !m.InTime {
			out = append(out, "timers wait, and none may run out: --timeouts says how many may, or --in-time")
		}
		return out
	case explore.Interrupted:
		return []string{"interrupted: not proven: nothing was found so far"}
	}
	out := []string{fmt.Sprintf("budget hit (--%s): not proven: nothing was found so far", r.Limit)}
	if r.Limit == "memory" || r.Limit == "states" {
		out = append(out, e.smaller())
	}
	return out
}

// smaller says what there is to visit less of.
func (e *explored) smaller() string {
	var ways []string
	add := func(is bool, form string, args ...any) {
		if is {
			ways = append(ways, fmt.Sprintf(form, args...))
		}
	}
	m, sync := e.options.Model, e.protocol.Timing == parley.Synchronous
	liars := e.begins.liars
	faults := m.Crashes + m.Losses + m.Doubles + m.FalseSuspicions + m.Timeouts
	add(sync && faults == 0 && e.flags.step == grains[0], "--step round or --step split")
	add(e.protocol.N > 2, "a smaller -n")
	for id := range parley.ID(e.protocol.N) {
		if how, lies := liars[0][id]; lies && atWill(how) {
			bare := e.names.bare(id)
			add(!e.begins.chosen, "--faulty %s for one choice of who lies", bare)
			add(true, "--faulty %s=%s for one way to lie", bare, faulty.TwoFaced.Name)
			break
		}
	}
	add(faults > 0, "fewer faults")
	add(len(e.begins.asked) > 1, "--requests that ask for less")
	add(len(e.begins.values) > 1, "fewer --values")
	return "less is to be visited with " + strings.Join(ways, ", or ") +
		"; --order random draws runs, which proves nothing"
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
