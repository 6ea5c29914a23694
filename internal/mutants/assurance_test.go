package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// declared returns the text of all test files of a package.
func declared(t *testing.T, root, folder string) []byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, b...)
	}
	return text
}

// Every test and every seeded bug on the page of promises exists, and no promise is made twice.
func TestAssuranceNamesWhatIsThere(t *testing.T) {
	root, mutants := module(t)
	promises, err := readAssurance(root)
	if err != nil {
		t.Fatal(err)
	}
	made := make(map[string]int)
	for _, p := range promises {
		if before := made[p.says]; before > 0 {
			t.Errorf("%s:%d: the promise of line %d again: %s", assurance, p.line, before, p.says)
		}
		made[p.says] = p.line
		for _, one := range p.tests {
			if !bytes.Contains(declared(t, root, one.folder), []byte("\nfunc "+one.function+"(t *testing.T) {")) {
				t.Errorf("%s:%d: %s has no %s", assurance, p.line, one.folder, one.function)
			}
		}
		for _, bug := range p.bugs {
			if !slices.ContainsFunc(mutants, func(m mutant) bool { return m.name == bug && m.equivalent == "" }) {
				t.Errorf("%s:%d: there is no seeded bug %s", assurance, p.line, bug)
			}
		}
	}
}

// Each bug of the page is tried with the tests of all rows that name it. A row that lacks anything, or names
// something that does not exist, is an error.
func TestAssured(t *testing.T) {
	all := []mutant{{name: "a/x", tests: []string{"./a", "./b"}}, {name: "b/c/y"}}
	head := "# A\n\n| promise | assumption | tests | seeded bugs |\n| --- | --- | --- | --- |\n"
	page := func(rows string) ([]mutant, error) {
		return assured(written(t, map[string]string{assurance: head + rows}), all)
	}
	got, err := page("| p | q | `a.TestA`, `d/e.TestB` | `a/x`, `b/c/y` |\n| r | s | `d/e.TestC` | `a/x` |\n")
	if err != nil || len(got) != 2 {
		t.Fatalf("got %d mutants, %v, want 2", len(got), err)
	}
	if x := got[0]; !slices.Equal(x.tests, []string{"./a", "./d/e"}) || x.run != "^TestA$|^TestB$|^TestC$" {
		t.Errorf("got a/x by %q in %q", x.run, x.tests)
	}
	if y := got[1]; !slices.Equal(y.tests, []string{"./a", "./d/e"}) || y.run != "^TestA$|^TestB$" {
		t.Errorf("got b/c/y by %q in %q", y.run, y.tests)
	}
	if some := chosen(got); some != "^TestA$|^TestB$|^TestC$" {
		t.Errorf("the baseline takes %q", some)
	}
	for rows, why := range map[string]string{
		"":                                       "no row",
		"| p | q | `a.TestA` | - |\n":            ":5: a promise, an assumption, a test and a seeded bug",
		"| p | q | `a/x` |\n":                    ":5: 3 cells",
		"| p | q | `a` | `a/x` |\n":              ":5: a: PACKAGE.TestName",
		"| p | q | `a.TestA` | `a/unheard-of` |": ":5: there is no mutant a/unheard-of",
	} {
		if _, err := page(rows); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: got %v, want %q", rows, err, why)
		}
	}
}
