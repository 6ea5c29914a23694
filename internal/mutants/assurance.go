package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"parley/internal/must"
)

// promise is a row of the tables in docs/explanation/assurance.md: a promise to users, its assumption, the tests that
// check it, and the seeded bugs that these tests catch.
type promise struct {
	says, assumes string
	tests         []testName
	bugs          []string // names of mutants
	line          int
}

// testName is a test of a package: the folder, and the function.
type testName struct{ folder, function string }

// assurance is the page of the promises.
const assurance = "docs/explanation/assurance.md"

var ticked = regexp.MustCompile("`([^`]+)`")

// readAssurance reads the rows of the tables.
func readAssurance(root string) ([]promise, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(assurance)))
	if err != nil {
		return nil, err
	}
	var all []promise
	for i, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| promise |") || strings.HasPrefix(line, "| --- |") {
			continue
		}
		wrong := func(why string) error { return fmt.Errorf("%s:%d: %s", assurance, i+1, why) }
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 4 {
			return nil, wrong(fmt.Sprintf("%d cells: promise, assumption, tests and bugs were expected", len(cells)))
		}
		p := promise{says: cells[0], assumes: cells[1], line: i + 1}
		for _, m := range ticked.FindAllStringSubmatch(cells[2], -1) {
			folder, function, ok := strings.Cut(path.Base(m[1]), ".")
			if !ok {
				return nil, wrong(m[1] + ": PACKAGE.TestName was expected")
			}
			p.tests = append(p.tests, testName{path.Join(path.Dir(m[1]), folder), function})
		}
		for _, m := range ticked.FindAllStringSubmatch(cells[3], -1) {
			p.bugs = append(p.bugs, m[1])
		}
		if p.says == "" || p.assumes == "" || len(p.tests) == 0 || len(p.bugs) == 0 {
			return nil, wrong("a promise, an assumption, a test and a seeded bug were expected")
		}
		all = append(all, p)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s has no row", assurance)
	}
	return all, nil
}

// assured returns the bugs of the page, each to be caught only by the tests of its rows.
func assured(root string, all []mutant) (out []mutant, err error) {
	defer must.Return(&err)
	for _, p := range must.Get(readAssurance(root)) {
		for _, bug := range p.bugs {
			i := slices.IndexFunc(out, func(m mutant) bool { return m.name == bug })
			if i < 0 {
				k := slices.IndexFunc(all, func(m mutant) bool { return m.name == bug })
				if k < 0 {
					return nil, fmt.Errorf("%s:%d: there is no mutant %s", assurance, p.line, bug)
				}
				m := all[k]
				m.tests, m.run = nil, ""
				i, out = len(out), append(out, m)
			}
			m := &out[i]
			for _, t := range p.tests {
				if folder := "./" + t.folder; !slices.Contains(m.tests, folder) {
					m.tests = append(m.tests, folder)
				}
				if one := "^" + t.function + "$"; !slices.Contains(strings.Split(m.run, "|"), one) {
					m.run = strings.TrimPrefix(m.run+"|"+one, "|")
				}
			}
		}
	}
	return out, nil
}
