package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// toll is the list of faults in a run.
type toll struct {
	events []event
	rested time.Duration // how long the load rested
}

// event is one fault of a run.
type event struct {
	fault              string
	said               string
	affected           []int         // the affected nodes
	began, over, whole time.Duration // whole: when all nodes had recovered
	others             recoveryTimes // of the nodes that were spared, where the fault measures them separately
	well               recoveryTimes
	answered           int           // commands of the table answered meanwhile
	outage             time.Duration // the longest time without an answer meanwhile
}

// promise says how soon all nodes must recover.
func (t *toll) promise(heal time.Duration) string {
	if slices.ContainsFunc(t.events, func(e event) bool { return e.fault == liarName }) {
		return fmt.Sprintf("well within %v after every fault, the node that lied within %v", heal, 2*heal)
	}
	return fmt.Sprintf("well within %v after every harm", heal)
}

// slow returns an error about the faults from which recovery took too long.
func (t *toll) slow(heal time.Duration) (err error) {
	for _, e := range t.events {
		limit := heal
		if e.fault == liarName { // the other nodes recovered before it restarted
			limit *= 2
		}
		if e.well.whole() > limit || e.others.whole() > heal {
			err = errors.Join(err, fmt.Errorf("%s at %s: %v, and without those that were harmed %v", e.fault, brief(e.began),
				e.well, e.others))
		}
	}
	return err
}

// enough returns an error if a run of the given length had too few faults, or fewer than its share of the least number
// of answers in four minutes.
func (t *toll) enough(o options, took time.Duration, answered, least int) error {
	share := float64(max(0, o.long-t.rested)) / float64(leastTime)
	kinds := make(map[string]bool)
	for _, e := range t.events {
		kinds[e.fault] = true
	}
	switch {
	case took < o.long:
		return fmt.Errorf("it ended after %v", took)
	case answered < max(1, int(float64(least)*share)):
		return fmt.Errorf("%d requests answered: at least %d are needed", answered, max(1, int(float64(least)*share)))
	case len(t.events) < max(1, int(leastFaults*share)):
		return fmt.Errorf("%d harms: at least %d are needed", len(t.events), max(1, int(leastFaults*share)))
	case o.only == "" && !o.bare && len(kinds) < min(leastFaults, int(leastFaults*share)):
		return fmt.Errorf("%d kinds of harm: at least %d are needed", len(kinds), leastFaults)
	}
	return nil
}

// print prints the recovery times for each kind of fault.
func (t *toll) print(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\nharm\ttimes\twell after, median\tat most\tlongest outage\tanswers\t\n")
	var kinds []string
	for _, e := range t.events {
		kinds = append(kinds, e.fault)
	}
	slices.Sort(kinds)
	for _, kind := range slices.Compact(kinds) {
		var healed []time.Duration
		outage, answered := time.Duration(0), 0
		for _, e := range t.events {
			if e.fault == kind {
				healed = append(healed, e.well.whole())
				outage, answered = max(outage, e.outage), answered+e.answered
			}
		}
		slices.Sort(healed)
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%d\t\n", kind, len(healed), brief(healed[len(healed)/2]),
			brief(healed[len(healed)-1]), brief(outage), answered)
	}
	_ = w.Flush()
	fmt.Fprintln(out)
}
