package main

import (
	"path"
	"slices"
	"strings"
	"testing"
)

const poem = "one\ntwo\nthree\n\nfour\ntwo\nfive\n"

// inPoem returns a mutant of a/poem.go with these replacements.
func inPoem(lines string) string { return "name: x\nbreaks: b\nfile: poem.go\n" + lines }

// Old lines are replaced by new ones, wherever they are and in whatever order the list has them.
func TestApply(t *testing.T) {
	for _, c := range []struct{ name, lines, want string }{
		{"a line for another", "-three\n+3\n", "one\ntwo\n3\n\nfour\ntwo\nfive\n"},
		{"a line that stays says which", " four\n-two\n+2\n", "one\ntwo\nthree\n\nfour\n2\nfive\n"},
		{"an empty line that stays", "-three\n \n-four\n", "one\ntwo\n\ntwo\nfive\n"},
		{"an empty line goes", " three\n-\n four\n", "one\ntwo\nthree\nfour\ntwo\nfive\n"},
		{"a new line", " one\n+1.5\n", "one\n1.5\ntwo\nthree\n\nfour\ntwo\nfive\n"},
		{"a new line at the beginning", "+0\n one\n", "0\none\ntwo\nthree\n\nfour\ntwo\nfive\n"},
		{"no newline at the end of the list", "-five\n+5", "one\ntwo\nthree\n\nfour\ntwo\n5\n"},
		{"two replacements", "-five\n+5\n\n-one\n+five\n", "five\ntwo\nthree\n\nfour\ntwo\n5\n"},
		{"neighbors", "-one\n+1\n\n-two\n-three\n", "1\n\nfour\ntwo\nfive\n"},
		{"a comment between", "-one\n# that was it\n+1\n", "1\ntwo\nthree\n\nfour\ntwo\nfive\n"},
		{"a line that looks like others of the list", "-one\n+name: y\n+# 1\n", "name: y\n# 1\ntwo\nthree\n\nfour\ntwo\nfive\n"},
	} {
		mutants, err := parseMutants("a", inPoem(c.lines))
		if err != nil || len(mutants) != 1 {
			t.Errorf("%s: got %d mutants, %v", c.name, len(mutants), err)
			continue
		}
		if got, err := mutants[0].apply("a/poem.go", poem); err != nil || got != c.want {
			t.Errorf("%s: got %v\n%s", c.name, err, got)
		}
	}
}

// Old text that does not occur exactly once is refused, with what to do.
func TestApplyRefuses(t *testing.T) {
	for lines, want := range map[string]string{
		"-six\n":                         `a/testdata/mutants.txt:4: x: a/poem.go has no such lines ("six" is nowhere): write them as they are now`,
		"-thr\n":                         `a/poem.go has no such lines ("thr" is nowhere)`,
		"-hree\n":                        `a/poem.go has no such lines ("hree" is nowhere)`,
		"-one\n-three\n":                 "a/poem.go has no such lines in this order",
		"-one\n+1\n\n-two\n+2\n":         "mutants.txt:7: x: a/poem.go has the old text 2 times, at lines 2, 6: add the line",
		"-two\n-three\n\n two\n-three\n": "mutants.txt:7: x: the old text overlaps with that of a/testdata/mutants.txt:4",
	} {
		mutants, err := parseMutants("a", inPoem(lines))
		if err != nil || len(mutants) != 1 {
			t.Errorf("%q: got %d mutants, %v", lines, len(mutants), err)
			continue
		}
		if got, err := mutants[0].apply("a/poem.go", poem); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q\n%s", lines, err, want, got)
		}
	}
}

// A mutant has the values of its own lines, and otherwise those of the lines before the first name.
func TestParseMutants(t *testing.T) {
	mutants, err := parseMutants("p/q", "# all\nexplored: - no machine\ntests: ./s\n\nname: b\nbreaks: agreement: always\n"+
		"tests: ./r/... ./s, ./t\nfile: q.go\n-a\nfile: ../o.go\n-b\n\n-c\n\nname: a\nequivalent: e\nrun: T|U\nexplored: sm 2 x\n"+
		"file: q.go\n-a\n")
	if err != nil || len(mutants) != 2 {
		t.Fatalf("got %d mutants, %v, want 2", len(mutants), err)
	}
	b, a := mutants[0], mutants[1]
	if b.name != "p/q/b" || b.at != "p/q/testdata/mutants.txt:5" || b.breaks != "agreement: always" || b.run != "" ||
		b.explored != "- no machine" || !slices.Equal(b.tests, []string{"./p/q", "./r/...", "./s", "./t"}) {
		t.Errorf("got %+v", b)
	}
	if a.name != "p/q/a" || a.breaks != "" || a.equivalent != "e" || a.run != "T|U" || a.explored != "sm 2 x" ||
		!slices.Equal(a.tests, []string{"./p/q", "./s"}) {
		t.Errorf("got %+v", a)
	}
	var files []string
	for _, e := range b.edits {
		files = append(files, e.file)
	}
	if !slices.Equal(files, []string{"p/q/q.go", "p/o.go", "p/o.go"}) {
		t.Errorf("got changes of %q", files)
	}
}

// Each wrong line of a list is named, with the mutant and what to do.
func TestParseMutantsRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"name: x\nfile: f\n-a\n":         "a/testdata/mutants.txt:1: x: a line breaks: or equivalent: is missing",
		"name: x\nbreaks: b\n":           ":1: x: nothing is changed",
		"name: x\nbreaks: b\n-a\n":       ":3: x: no line file: says where these lines are",
		inPoem("-a\n") + inPoem("-a\n"):  ":5: x: the name x is taken, at a/testdata/mutants.txt:1",
		inPoem("-a\n") + "\nbreaks: c\n": ":6: x: it has a line breaks: already",
		inPoem("+a\n"):                   ":4: x: nothing says where the new lines go",
		inPoem(" a\n"):                   ":4: x: these lines change nothing",
		inPoem("-a\n+a\n"):               ":4: x: these lines change nothing",
		inPoem("-a\n\tb := c\n"):         `:5: x: no key "b " here`,
		inPoem("-a\nb\n"):                `:5: x: "b" is no line of a list`,
		"name:\n":                        `:1: a: "name" is no line of a list`,
		"# c\n\nfile: f\n":               `:3: a: no key "file" here`,
		"brakes: b\n\n" + inPoem("-a\n"): `:1: a: no key "brakes" here`,
	} {
		if _, err := parseMutants("a", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	_, err := parseMutants("a", "name: x\nfile: f\n-a\n\nname: y\nbreaks: b\n")
	if err == nil || !strings.Contains(err.Error(), ":1: x: ") || !strings.Contains(err.Error(), ":5: y: ") {
		t.Errorf("got %v, want both mutants named", err)
	}
}

// Lists are found in all folders except hidden ones, and a file that a mutant names must exist.
func TestFindMutants(t *testing.T) {
	files := make(map[string]string)
	for _, folder := range []string{".", "b/c", "a", ".git/x"} {
		files[path.Join(folder, listed)] = inPoem("-one\n")
	}
	root := written(t, files)
	mutants, err := findMutants(root)
	var names []string
	for _, m := range mutants {
		names = append(names, m.name)
	}
	if err != nil || !slices.Equal(names, []string{"a/x", "b/c/x", "x"}) {
		t.Fatalf("got %q, %v", names, err)
	}
	if _, _, err := mutants[1].overlay(root, t.TempDir()); err == nil ||
		!strings.HasPrefix(err.Error(), "b/c/testdata/mutants.txt:4: x: ") {
		t.Errorf("got %v, want the file missed", err)
	}
}
