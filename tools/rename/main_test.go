package main

import (
	"strings"
	"testing"
)

func planted() *renamer {
	r := &renamer{from: "parley", to: "example.org/y"}
	r.folders = []string{"tools", "lockstep", "agreement/eig/sliced", "agreement/eig"}
	r.compile()
	return r
}

func TestText(t *testing.T) {
	for _, c := range [][2]string{
		{"module parley\n", "module example.org/y\n"},
		{"module parley/tools\n", "module example.org/y/tools\n"},
		{"require parley v0.0.0\n", "require example.org/y v0.0.0\n"},
		{"\nreplace parley => ../x\n", "\nreplace example.org/y => ../x\n"},
		{"import \"parley/lockstep\"\n", "import \"example.org/y/lockstep\"\n"},
		{"\t\"parley\"\n", "\t\"example.org/y\"\n"},
		{"\n\tp \"parley\"\nimport . \"parley\"", "\n\tp \"example.org/y\"\nimport . \"example.org/y\""},
		{"+\t\"parley\"\n-\tp \"parley\"\n", "+\t\"example.org/y\"\n-\tp \"example.org/y\"\n"},
		{"`parley/agreement/eig/sliced`", "`example.org/y/agreement/eig/sliced`"},
		{"parley/agreement/eig.", "example.org/y/agreement/eig."},
		{"go doc parley/...", "go doc example.org/y/..."},
		// The command, the package and other paths keep their names.
		{"go run ./cmd/parley demo", "go run ./cmd/parley demo"},
		{"parley demo\nparley.Msg\n", "parley demo\nparley.Msg\n"},
		{"x := []string{\"parley\"}\n\t\"parley\",\n", "x := []string{\"parley\"}\n\t\"parley\",\n"},
		{"parley/elsewhere parley/lockstepper", "parley/elsewhere parley/lockstepper"},
		{"https://example.com/parley/lockstep", "https://example.com/parley/lockstep"},
	} {
		if got := planted().text(c[0]); got != c[1] {
			t.Errorf("%q became %q, expected %q", c[0], got, c[1])
		}
	}
}

func TestSource(t *testing.T) {
	const in = `package x

import (
	"os"

	"parley"
	p "parley/lockstep"
)

var name = "parley"
var path = "parley/lockstep"
var mod = "module x\nrequire parley v0.0.0\n"
var code = ` + "`" + `package y

import (
	"parley"
)
` + "`" + `
`
	got, err := planted().file("x/x.go", in)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(
		"\t\"parley\"", "\t\"example.org/y\"", "parley/lockstep", "example.org/y/lockstep",
		"require parley", "require example.org/y",
	).Replace(in)
	if got != want {
		t.Errorf("got\n%s\nexpected\n%s", got, want)
	}
}

func TestRefuses(t *testing.T) {
	for _, to := range []string{"", "a b", "/x", "x/", "x//y", "x\n", `x"`, "../x", "-x"} {
		if _, err := rename(t.TempDir(), to); err == nil || !strings.Contains(err.Error(), "no path of a module") {
			t.Errorf("%q: %v", to, err)
		}
	}
}
