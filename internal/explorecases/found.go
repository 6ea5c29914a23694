package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"

	"parley"
	"parley/explore"
)

// found is the result of a search. A number that is 0 is not compared.
type found struct {
	states, ends uint64
	deep         int    // transitions of the longest run to a new state
	moves        int    // of the shortest run that breaks a property: transitions or rounds
	property     string // the broken property; empty: none
}

// with adds the shortest finding.
func (f found) with(list []explore.Finding, rounds bool) found {
	for i := range list {
		n := length(&list[i].Run, rounds)
		if f.property == "" || n < f.moves {
			f.property, f.moves = cmp.Or(list[i].Property, "never"), n
		}
	}
	return f
}

// length returns how many transitions a run has without the starts of the processes, or how many rounds. The rounds
// are the minimum over processes, which is a correct process's, of the number of expired timers, less the first, with
// which rounds begin.
func length(r *explore.Run, rounds bool) int {
	expired := make(map[parley.ID]int)
	moves := 0
	for i := range r.Steps {
		s := &r.Steps[i]
		if s.Kind == explore.OnTimeout {
			expired[s.At]++
		}
		if s.Kind != explore.OnStart {
			moves++
		}
	}
	if !rounds {
		return moves
	}
	least := moves
	// order: only the minimum is used
	for _, times := range expired {
		least = min(least, times)
	}
	return max(0, least-1)
}

// differs returns what differs from the list.
func (x *exploredCase) differs() string {
	want, got := &x.want, &x.got
	switch {
	case want.property != got.property || want.moves != got.moves:
		return fmt.Sprintf("%q breaks in %d transitions, and %q in %d is expected",
			got.property, got.moves, want.property, want.moves)
	case want.property == "" && (want.states != got.states || want.ends != got.ends || want.deep != got.deep):
		return fmt.Sprintf("%d states and %d ends, %d deep, and %d, %d and %d are expected",
			got.states, got.ends, got.deep, want.states, want.ends, want.deep)
	}
	return ""
}

// lines returns the result as lines of the list.
func (f *found) lines() []string {
	if f.property != "" {
		return []string{fmt.Sprintf("breaks %s in %d", f.property, f.moves)}
	}
	out := []string{fmt.Sprintf("states %d", f.states)}
	if f.ends > 0 {
		out = append(out, fmt.Sprintf("ends %d", f.ends))
	}
	return append(out, fmt.Sprintf("deep %d", f.deep))
}

// rewrite writes the results of the cases into the list.
func rewrite(path string, cases []exploredCase) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var out []string
	var at *exploredCase
	for _, line := range strings.Split(string(text), "\n") {
		word, rest, _ := strings.Cut(line, " ")
		if word == "case" {
			at = &cases[slices.IndexFunc(cases, func(c exploredCase) bool { return c.name == rest })]
		}
		tried := at != nil && at.got != found{}
		switch {
		case tried && (word == "breaks" || word == "states" || word == "ends" || word == "deep"):
			continue
		case tried && line == "":
			out = append(out, at.got.lines()...)
			at = nil
		}
		out = append(out, line)
	}
	return os.WriteFile(path, []byte(strings.Join(out, "\n")), 0o644)
}

// unit returns the unit of the length of a run.
func (x *exploredCase) unit() string {
	if x.rounds {
		return "rounds"
	}
	return "transitions"
}

// verdict says what a search proves.
func (x *exploredCase) verdict(r *explore.Report) string {
	switch {
	case x.got.property == "never":
		return fmt.Sprintf("reached in %d %s", x.got.moves, x.unit())
	case x.got.property != "":
		return fmt.Sprintf("%s breaks in %d %s", x.got.property, x.got.moves, x.unit())
	case r.Outcome == explore.Exhausted:
		return cmp.Or(x.says, "holds")
	case r.Limit == "depth":
		return "holds to this depth"
	}
	return r.Outcome.String()
}

// circumstances describes the possible faults and the conditions of the search.
func (x *exploredCase) circumstances() string {
	out := strings.Fields(x.model)
	if x.lies != "" {
		out = append(out, "liars "+x.lies)
	}
	switch {
	case x.beyond && len(x.only) > 0:
		out = append(out, "(not promised: "+strings.Join(x.only, ", ")+")")
	case x.beyond:
		out = append(out, "(beyond the bound)")
	}
	return strings.Join(out, " ")
}
