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

// found is what a search found. A number that is 0 is not asked for.
type found struct {
	states, ends uint64
	deep         int    // how many moves the longest run has of those to a new state
	moves        int    // of the shortest run that breaks a property, or rounds
	property     string // that it breaks; empty: none
}

// with adds the shortest of what was found.
func (f found) with(list []explore.Finding, rounds bool) found {
	for i := range list {
		n := length(&list[i].Run, rounds)
		if f.property == "" || n < f.moves {
			f.property, f.moves = cmp.Or(list[i].Property, "never"), n
		}
	}
	return f
}

// length is how many moves a run has without the starts of the processes, or how many
// rounds: as often as the timer runs out of a process for which it does so least, which is
// a correct one, without the first time, when rounds begin.
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
	// order: the least of them is wanted
	for _, times := range expired {
		least = min(least, times)
	}
	return max(0, least-1)
}

// differs tells what is not as the list says.
func (x *explored) differs() string {
	want, got := &x.want, &x.got
	switch {
	case want.property != got.property || want.moves != got.moves:
		return fmt.Sprintf("%q breaks in %d moves, and %q in %d is expected",
			got.property, got.moves, want.property, want.moves)
	case want.property == "" && (want.states != got.states || want.ends != got.ends || want.deep != got.deep):
		return fmt.Sprintf("%d states and %d ends, %d deep, and %d, %d and %d are expected",
			got.states, got.ends, got.deep, want.states, want.ends, want.deep)
	}
	return ""
}

// lines are what was found as it stands in the list.
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

// rewrite writes what the cases found into the list.
func rewrite(path string, cases []explored) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var out []string
	var at *explored
	for _, line := range strings.Split(string(text), "\n") {
		word, rest, _ := strings.Cut(line, " ")
		if word == "case" {
			at = &cases[slices.IndexFunc(cases, func(c explored) bool { return c.name == rest })]
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

// unit is what the length of a run counts.
func (x *explored) unit() string {
	if x.rounds {
		return "rounds"
	}
	return "moves"
}

// verdict says what a search proves.
func (x *explored) verdict(r *explore.Report) string {
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

// circumstances are what may go wrong, and what is asked for.
func (x *explored) circumstances() string {
	out := strings.Fields(x.model)
	if x.lies != "" {
		out = append(out, "liars "+x.lies)
	}
	switch {
	case x.beyond && len(x.only) > 0:
		out = append(out, "("+strings.Join(x.only, ", ")+" is not promised)")
	case x.beyond:
		out = append(out, "(beyond the bound)")
	}
	return strings.Join(out, " ")
}
