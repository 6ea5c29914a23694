package main

import (
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"text/tabwriter"
)

// patience is the maximum median of the numbers of seeds, over the mutants that only seeds catch.
const patience = 200

// within says how many seeds caught the mutant.
func (o outcome) within() string {
	switch {
	case o.verdict != caught && o.verdict != mistaken:
		return "-"
	case o.hung:
		return "hung"
	case o.seeds == 0:
		return "unit"
	}
	return strconv.Itoa(o.seeds)
}

// tally has the results for the mutants of a package.
type tally struct {
	name       string
	all, hung  int
	unit       int
	seeds, one []int // numbers of seeds; one: with 1 for each mutant that needed none
}

func (t *tally) add(o outcome) {
	t.all++
	switch {
	case o.verdict != caught:
		return
	case o.hung:
		t.hung++
	case o.seeds == 0:
		t.unit++
		t.one = append(t.one, 1)
	default:
		t.seeds = append(t.seeds, o.seeds)
		t.one = append(t.one, o.seeds)
	}
}

// median returns the middle of a list, the upper of two, and 0 for an empty list.
func median(list []int) int {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return list[len(list)/2]
}

// tallied returns the results of each package, and of all.
func tallied(mutants []mutant, outcomes []outcome) (tallies []tally, total tally) {
	total.name = "all"
	for i, m := range mutants {
		if m.equivalent != "" {
			continue
		}
		folder := path.Dir(m.name)
		at := slices.IndexFunc(tallies, func(t tally) bool { return t.name == folder })
		if at < 0 {
			at, tallies = len(tallies), append(tallies, tally{name: folder})
		}
		tallies[at].add(outcomes[i])
		total.add(outcomes[i])
	}
	return tallies, total
}

// summary prints how many seeds the mutants of each package took.
func summary(out io.Writer, tallies []tally) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\nPACKAGE\tMUTANTS\tUNIT\tHUNG\tBY SEEDS\tMEDIAN\tMOST\tMEDIAN WITH UNIT\t")
	for _, t := range tallies {
		most := 0
		if len(t.seeds) > 0 {
			most = slices.Max(t.seeds)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t\n",
			t.name, t.all, t.unit, t.hung, len(t.seeds), median(t.seeds), most, median(t.one))
	}
	_ = w.Flush() // an error shows in the next output
}
