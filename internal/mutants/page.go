package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/internal/made"
)

// page has the latest results of each package, in part.
const page = "docs/reference/mutants.md"

var part = made.Part{Name: "mutants", Command: "make mutants"}

// pageRow is a row of the page: a package, and how its mutants were caught.
type pageRow struct {
	name                    string
	all, unit, seeded, hung int
	most                    int // the largest number of seeds
	date                    string
}

const pageHead = "| package | bugs | caught without seeds | by seeds | most seeds | by a test that did not end | " +
	"date |\n" +
	"| --- | ---: | ---: | ---: | ---: | ---: | --- |\n"

func (r pageRow) String() string {
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d | %s |\n", r.name, r.all, r.unit, r.seeded, r.most, r.hung, r.date)
}

// pageRows reads the rows of the page's part.
func pageRows(text string) (rows []pageRow) {
	for line := range strings.Lines(text) {
		var r pageRow
		fields := strings.ReplaceAll(strings.Trim(line, "|\n "), "|", "")
		if _, err := fmt.Sscan(fields, &r.name, &r.all, &r.unit, &r.seeded, &r.most, &r.hung, &r.date); err == nil {
			rows = append(rows, r)
		}
	}
	return rows
}

// updatePage replaces the rows of the packages of which all mutants were tried, and drops those that have none now.
func updatePage(file string, all, tried []mutant, outcomes []outcome) error {
	text, err := part.Read(file)
	if err != nil {
		return err
	}
	declared, _ := tallied(all, make([]outcome, len(all)))
	results, _ := tallied(tried, outcomes)
	old := pageRows(text)
	var rows []pageRow
	for _, d := range declared {
		if at := slices.IndexFunc(results, func(t tally) bool { return t.name == d.name && t.all == d.all }); at >= 0 {
			rows = append(rows, rowOf(results[at]))
		} else if at := slices.IndexFunc(old, func(r pageRow) bool { return r.name == d.name }); at >= 0 {
			rows = append(rows, old[at])
		}
	}
	return part.Write(file, tableOf(rows))
}

// rowOf returns the row of a package whose mutants were all caught today.
func rowOf(t tally) pageRow {
	r := pageRow{name: t.name, all: t.all, unit: t.unit, seeded: len(t.seeds), hung: t.hung}
	r.date = time.Now().UTC().Format(time.DateOnly)
	if len(t.seeds) > 0 {
		r.most = slices.Max(t.seeds)
	}
	return r
}

// tableOf returns the part of the page.
func tableOf(rows []pageRow) string {
	total := pageRow{name: "all"}
	var b strings.Builder
	b.WriteString(pageHead)
	for _, r := range rows {
		b.WriteString(r.String())
		total.all += r.all
		total.unit += r.unit
		total.seeded += r.seeded
		total.hung += r.hung
		total.most, total.date = max(total.most, r.most), max(total.date, r.date)
	}
	b.WriteString(total.String())
	return b.String()
}
