package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// module returns the root of this module, and its mutants.
func module(t *testing.T) (root string, all []mutant) {
	t.Helper()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if all, err = findMutants(root); err != nil || len(all) < len(six) {
		t.Fatalf("%d mutants, %v", len(all), err)
	}
	return root, all
}

// written writes files into a new folder, and returns it.
func written(t *testing.T, files map[string]string) (root string) {
	t.Helper()
	root = t.TempDir()
	for name, text := range files {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// Each of the six is a mutant, and the tests that must catch it are tests of its package. Whether they do is tested
// by make mutants-short, which rebuilds all of them.
func TestSixAreNamed(t *testing.T) {
	root, all := module(t)
	chosen, err := quick(all)
	if err != nil || len(chosen) != 6 {
		t.Fatalf("got %d mutants, %v, want 6", len(chosen), err)
	}
	for _, m := range chosen {
		text := declared(t, root, m.tests[0])
		for name := range strings.SplitSeq(m.run, "|") {
			if !bytes.Contains(text, []byte("\nfunc "+name+"(t *testing.T) {")) {
				t.Errorf("%s: %s has no %s", m.name, m.tests[0], name)
			}
		}
	}
}

// Every mutant of the module is found in the source, whether it compiles or not.
func TestMutantsApply(t *testing.T) {
	root, all := module(t)
	for _, m := range all {
		if _, _, err := m.overlay(root, t.TempDir()); err != nil {
			t.Error(err)
		}
	}
}

// planted is a module with mutants of every verdict.
var planted = map[string]string{
	"go.mod":     "module planted\n\ngo 1.26\n",
	"sum/sum.go": "package sum\n\nfunc Of(a, b int) int {\n\treturn a + b\n}\n",
	"sum/sum_test.go": `package sum

import "testing"

func TestSum(t *testing.T) {
	if Of(1, 2) != 3 {
		t.Error(Of(1, 2))
	}
}
`,
	"use/use.go": "package use\n",
	"use/use_test.go": `package use

import (
	"testing"

	"planted/sum"
)

func TestUse(t *testing.T) { _ = 8 / sum.Of(8, 0) }

func TestSeeds(t *testing.T) {
	for seed := range 100 {
		if seed == 41 && sum.Of(9, seed) != 50 {
			t.Fatalf("n = 7, seed %d: %d", seed, sum.Of(9, seed))
		}
	}
}
`,
	"sum/testdata/mutants.txt": seeded("caught", "breaks: the sum", "a - b") +
		seeded("elsewhere", "breaks: a division in use alone\ntests: ./use", "a + b*min(b, 2)/2 - a/8*8") +
		seeded("rare", "breaks: large sums\ntests: ./use", "min(a + b, 49)") +
		seeded("equal", "equivalent: a sum has no order", "b + a") +
		seeded("mistaken", "equivalent: or so it seems", "a * b") +
		seeded("survives", "breaks: nothing that a test knows of", "a ^ b") +
		seeded("compiles", "breaks: the grammar", "a +") +
		strings.Replace(seeded("stale", "breaks: a line that has changed", "a - b"), "a + b", "a+b", 1),
}

// seeded returns a mutant of the planted module.
func seeded(name, head, into string) string {
	return "name: " + name + "\n" + head + "\nfile: sum.go\n-\treturn a + b\n+\treturn " + into + "\n\n"
}

func TestVerdicts(t *testing.T) {
	root := written(t, planted)
	mutants, err := findMutants(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := baseline(root, mutants); err != nil {
		t.Error(err)
	}
	told := 0
	outcomes := tryAll(root, mutants, 2, func(mutant, outcome) { told++ })
	want := map[string]struct {
		verdict verdict
		by      string
		within  string
	}{
		"sum/caught":    {caught, "TestSum", "unit"},
		"sum/elsewhere": {caught, "TestUse", "unit"},
		"sum/rare":      {caught, "TestSeeds", "42"},
		"sum/equal":     {equivalent, "a sum has no order", "-"},
		"sum/mistaken":  {mistaken, "TestSum", "unit"},
		"sum/survives":  {survived, "", "-"},
		"sum/compiles":  {broken, "does not compile: sum/sum.go", "-"},
		"sum/stale":     {broken, "sum/testdata/mutants.txt:48: stale: sum/sum.go has no such lines", "-"},
	}
	if len(mutants) != len(want) || told != len(want) {
		t.Errorf("found %d mutants of %d, and told of %d", len(mutants), len(want), told)
	}
	for i, m := range mutants {
		w, o := want[m.name], outcomes[i]
		if o.verdict != w.verdict || !strings.HasPrefix(o.by, w.by) || o.within() != w.within {
			t.Errorf("%s: %s by %q within %s, expected %+v", m.name, o.verdict, o.by, o.within(), w)
		}
	}
	var table bytes.Buffer
	if report(&table, mutants, outcomes) == nil {
		t.Error("the report has nothing to complain of")
	}
	for _, line := range []string{
		"\n PACKAGE MUTANTS UNIT HUNG BY SEEDS MEDIAN MOST MEDIAN WITH UNIT\n sum 6 2 0 1 42 42 1\n all 6 2 0 1 42 42 1\n",
		"\n6 mutants: 3 caught, 1 survived, 2 broken; 1 equivalent, 1 wrongly declared so\n",
	} {
		if !strings.Contains(blanks.ReplaceAllString(table.String(), " "), line) {
			t.Errorf("the report lacks %q:\n%s", line, table.String())
		}
	}
}

var blanks = regexp.MustCompile(` +`)

// The seed at which a test fails, or the number of runs without a result, is read from its output.
func TestSaidSeeds(t *testing.T) {
	for line, want := range map[string]int{
		"    x_test.go:7: n=4 m=1 seed 0: validity: none":          1,
		"    x_test.go:7: seed 17, faulty 1=flip: broken":          18,
		"--- FAIL: TestX/seed_17 (0.00s)":                          0,
		"    x_test.go:7: seeds 17":                                0,
		"    x_test.go:7: agreement was not seen in 300 runs: ...": 300,
		"    x_test.go:7: nothing breaks in all 50 seeds":          50,
		"panic: sim: seed 3, at tick 900: index out of range":      4,
		"    x_test.go:7: seed 99999999999999999999: broken":       0,
	} {
		if have := seeds(line); have != want {
			t.Errorf("%q tells of %d seeds, not %d", line, have, want)
		}
	}
}

// A mutant whose tests do not end is caught, but without a number of seeds.
func TestHung(t *testing.T) {
	const events = `{"Action":"output","Package":"p","Test":"TestX","Output":"    seed 3: something\n"}
{"Action":"output","Package":"p","Test":"TestX","Output":"panic: test timed out after 3m0s\n"}
{"Action":"fail","Package":"p","Test":"TestX"}
`
	v, f := judge([]byte(events), "")
	if o := (outcome{verdict: v, finding: f}); v != caught || o.by != "TestX" || o.within() != "hung" {
		t.Errorf("%+v", o)
	}
}

// The median is over the mutants that took seeds; a median that is too high is an error.
func TestMedian(t *testing.T) {
	mutants := make([]mutant, 4)
	outcomes := make([]outcome, len(mutants))
	for i, n := range []int{0, 3, 200, 999} {
		mutants[i].name, outcomes[i].seeds = "p/x", n
	}
	var out bytes.Buffer
	if err := report(&out, mutants, outcomes); err != nil || !strings.Contains(out.String(), " 200 ") {
		t.Errorf("%v\n%s", err, out.String())
	}
	outcomes[2].seeds++
	if err := report(&out, mutants, outcomes); err == nil {
		t.Error("201 in the median are not too many")
	}
}

// If the tests fail without a mutant, no mutant means anything.
func TestBaseline(t *testing.T) {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":    "module planted\n\ngo 1.26\n",
		"a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { t.Error(\"a\") }\n",
	} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := baseline(root, []mutant{{tests: []string{"."}}}); err == nil || !strings.Contains(err.Error(), "TestA") {
		t.Error(err)
	}
}

func TestMatching(t *testing.T) {
	all := []mutant{{name: "a/eig/x"}, {name: "a/eig/y"}, {name: "a/om/x"}}
	for glob, want := range map[string]int{"": 3, "a/eig/*": 2, "*/*/x": 2, "a/om": 1, "a": 3} {
		got, err := matching(all, glob)
		if err != nil || len(got) != want {
			t.Errorf("%q matches %v, %v", glob, got, err)
		}
	}
	for _, glob := range []string{"b", "eig", "["} {
		if got, err := matching(all, glob); err == nil {
			t.Errorf("%q matches %v", glob, got)
		}
	}
	if got, err := quick(all); err == nil {
		t.Errorf("the six are %v", got)
	}
}
