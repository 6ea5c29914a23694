package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The page has a row for each package with mutants, with their number.
func TestPageIsCurrent(t *testing.T) {
	root, all := module(t)
	text, err := part.Read(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	declared, total := tallied(all, make([]outcome, len(all)))
	want := make(map[string]int)
	for _, d := range append(declared, total) {
		want[d.name] = d.all
	}
	for _, r := range pageRows(text) {
		if r.name != "all" && (r.all != want[r.name] || r.unit+r.seeded+r.hung != r.all) {
			t.Errorf("%s: got %d bugs, %d of them caught, want %d: run make mutants ONLY='%s/*'", r.name, r.all,
				r.unit+r.seeded+r.hung, want[r.name], r.name)
		}
		delete(want, r.name)
	}
	for name := range want {
		t.Errorf("%s has no row: run make mutants ONLY='%s/*'", name, name)
	}
}

// A run renews the rows of the packages that it tried as a whole, and drops packages without mutants.
func TestUpdatePage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	old := pageHead + "| a | 1 | 1 | 0 | 0 | 0 | 2026-01-01 |\n| gone | 1 | 1 | 0 | 0 | 0 | 2026-01-01 |\n" +
		"| b/c | 2 | 0 | 2 | 7 | 0 | 2026-01-01 |\n| all | 4 | 2 | 2 | 7 | 0 | 2026-01-01 |\n"
	page, err := part.Fill([]byte("x\n<!-- mutants: made by \"make mutants\" -->\n<!-- end of mutants -->\n"), old)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
	all := []mutant{{name: "a/one"}, {name: "a/two"}, {name: "b/c/one"}, {name: "b/c/two"}}
	tried := []mutant{all[0], all[1], all[2]}
	if err := updatePage(file, all, tried, []outcome{{verdict: caught, finding: finding{seeds: 3}}, {verdict: caught}, {verdict: caught}}); err != nil {
		t.Fatal(err)
	}
	text, err := part.Read(file)
	rows := pageRows(text)
	if err != nil || len(rows) != 3 {
		t.Fatalf("got %q, %v", text, err)
	}
	for i, want := range []pageRow{{name: "a", all: 2, unit: 1, seeded: 1, most: 3}, {name: "b/c", all: 2, seeded: 2, most: 7},
		{name: "all", all: 4, unit: 1, seeded: 3, most: 7}} {
		want.date = rows[i].date
		if rows[i] != want {
			t.Errorf("got %+v, want %+v", rows[i], want)
		}
	}
	if rows[0].date <= rows[1].date || rows[1].date != "2026-01-01" || rows[2].date != rows[0].date {
		t.Errorf("got dates %s, %s, %s", rows[0].date, rows[1].date, rows[2].date)
	}
}
