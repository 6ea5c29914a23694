package exploration

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley"
	"parley/explore"
	"parley/internal/draw/prose"
	"parley/internal/lists"
)

// verdict says in one line how the search ended, and what follows from that.
func (e *Result) Verdict() []string {
	r := &e.report
	switch r.Outcome {
	case explore.Found:
		return e.foundVerdict()
	case explore.Exhausted:
		out := []string{"exhausted: " + e.holds()}
		out = append(out, e.untested()...)
		if m := e.options.Model; r.Ends == 0 && m.Timeouts == 0 && !m.InTime {
			out = append(out, "no run ends, because no timer may expire: allow timers to expire with --timeouts N, "+
				"or bound delays with --in-time")
		}
		return out
	case explore.Interrupted:
		return []string{"interrupted: not proven; nothing was found so far", e.covered()}
	}
	out := []string{fmt.Sprintf("budget hit (--%s): not proven; nothing was found so far", r.Limit)}
	switch r.Limit {
	case "for":
		out = append(out, e.covered(), e.fewer())
	case "memory", "states":
		out = append(out, e.Smaller())
	}
	return out
}

// covered says how far a search came that ended early, and at what rate.
func (e *Result) covered() string {
	p := &e.report.Progress
	if e.split != nil {
		return fmt.Sprintf("covered: %s in %.1f s, %s per second, and %s of the last round",
			prose.Count(p.States, "state at the start of a round", "states at the start of a round"), p.Took.Seconds(),
			prose.Number(Rate(*p)), prose.Count(p.Moves, "evaluation", "evaluations"))
	}
	return fmt.Sprintf("covered: %s in %.1f s, %s per second; %s more are known but not yet visited",
		prose.Count(p.States, "state", "states"), p.Took.Seconds(), prose.Number(Rate(*p)), prose.Number(p.Frontier))
}

// fewer names three flags that make a search smaller whose time was up, and the flag that lifts the limit.
func (e *Result) fewer() string {
	return "to visit fewer states: " + strings.Join(e.smallerAt("for"), "; ") +
		"; to search longer: --for 0, which sets no limit"
}

// smallerAt returns three ways to make a search smaller whose time was up, and nothing for another limit.
func (e *Result) smallerAt(limit string) []string {
	if limit != "for" {
		return nil
	}
	ways := e.ways()
	return ways[:min(3, len(ways))]
}

// holds says what holds if nothing was found.
func (e *Result) holds() string {
	if e.aim != "" {
		return aims[e.aim].holds + e.goal.Says
	}
	first := "no promise breaks"
	if e.options.Beyond {
		first = "nothing breaks, promised or not"
	}
	sentences := []string{first + "."}
	var partly []string
	for _, part := range []struct {
		mode  parley.Mode
		where string
	}{
		{parley.Always, "In every state: "},
		{parley.Eventually, "In " + terminal(e.report.Ends) + ": "},
	} {
		var names []string
		for _, q := range e.looked(part.mode) {
			switch j := e.judged(q); {
			case !j.Tested:
			case j.Lacks == "" || e.options.Beyond:
				names = append(names, q)
			default:
				partly = append(partly, q)
			}
		}
		if len(names) > 0 {
			sentences = append(sentences, part.where+strings.Join(names, ", ")+".")
		}
	}
	if len(partly) > 0 {
		sentences = append(sentences, "Where it is promised: "+strings.Join(partly, ", ")+".")
	}
	return strings.Join(sentences, " ")
}

// terminal counts the terminal states.
func terminal(n uint64) string {
	if n == 1 {
		return "the one terminal state"
	}
	return "all " + prose.Number(n) + " terminal states"
}

// judged returns how far a property was tested.
func (e *Result) judged(property string) explore.Judged {
	for _, j := range e.report.Judged {
		if j.Property == property {
			return j
		}
	}
	return explore.Judged{Property: property}
}

// untested names the properties about which an exhausted search shows nothing, or not everything, with the reasons.
func (e *Result) untested() (out []string) {
	if e.report.Outcome != explore.Exhausted || e.options.Goal != nil {
		return nil
	}
	const endless = "no run ends"
	var never, idle, some reasons
	for _, q := range slices.Concat(e.looked(parley.Always), e.looked(parley.Eventually)) {
		switch j := e.judged(q); {
		case j.Lacks+j.Vacuous == "" && !j.Tested:
			idle.add(q, endless)
		case !j.Promised && !e.options.Beyond:
			never.add(q, j.Lacks)
		case !j.Tested && j.Lacks != "" && !e.options.Beyond:
			idle.add(q, "where it is promised, there is nothing to test: "+j.Vacuous+"; elsewhere it is not promised: "+j.Lacks)
		case !j.Tested:
			idle.add(q, j.Vacuous)
		case j.Lacks != "" && !e.options.Beyond:
			some.add(q, j.Lacks)
		}
	}
	const beyond = "; --beyond-bound searches for runs that break these properties"
	for _, one := range []struct {
		text string
		of   reasons
		hint string
	}{
		{"never tested: ", idle, ""}, {"promised in no run: ", never, beyond},
		{"promised only in some runs: ", some, beyond},
	} {
		if len(one.of.order) > 0 {
			out = append(out, one.text+one.of.text()+one.hint)
		}
	}
	return out
}

// reasons groups properties by reason.
type reasons struct {
	order []string
	of    map[string][]string
}

func (r *reasons) add(property, why string) {
	if r.of == nil {
		r.of = make(map[string][]string)
	}
	if r.of[why] = append(r.of[why], property); len(r.of[why]) == 1 {
		r.order = append(r.order, why)
	}
}

func (r *reasons) text() string {
	said := func(why string) string { return prose.And(r.of[why]) + " (" + why + ")" }
	return strings.Join(lists.Of(r.order, said), ", ")
}

// foundVerdict says what was found.
func (e *Result) foundVerdict() []string {
	f := e.found[0]
	var out []string
	switch {
	case f.finding.Property == "" && e.aim == "goal":
		out = append(out, "found: "+e.goal.Says)
	case f.finding.Property == "":
		out = append(out, "VIOLATED: "+e.broken(f.finding))
	case f.finding.Property == explore.NoPanic:
		out = append(out, "VIOLATED: "+f.why)
	case f.finding.Promised:
		out = append(out, fmt.Sprintf("VIOLATED: %s: %s", f.finding.Property, f.why))
	default:
		out = append(out, fmt.Sprintf("found: %s breaks, which is not promised: %s", f.finding.Property, f.why))
	}
	if !(e.Found() != nil) {
		out = append(out, "interrupted before the run was complete: the same command finds it again")
	}
	if more := e.others(); more != "" {
		out = append(out, more)
	}
	switch limit := e.report.Limit; {
	case !e.options.All: // the search ended with it
	case e.interrupted:
		out = append(out, "interrupted: there may be more")
	case limit != "":
		out = append(out, fmt.Sprintf("budget hit (--%s): there may be more", limit))
	}
	return out
}

// others counts the findings after the first.
func (e *Result) others() string {
	const kept = 100
	counts := make(map[string]uint64)
	for _, f := range e.report.Findings[1:] {
		counts[e.broken(&f)]++
	}
	parts := lists.Of(slices.Sorted(maps.Keys(counts)), func(what string) string {
		return what + " (" + prose.Count(counts[what], "time", "times") + ")"
	})
	switch n := len(e.report.Findings); {
	case n < 2:
		return ""
	case n == kept:
		parts = append(parts, "and possibly more")
	}
	return "also found: " + strings.Join(parts, ", ")
}
