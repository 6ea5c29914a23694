package main

import (
	"strings"
	"testing"
)

func planted() *renamer {
	r := &renamer{from: "former", to: "example.org/y"}
	r.folders = []string{"tools", "lockstep", "agreement/eig/sliced", "agreement/eig"}
	r.compile()
	return r
}

func TestText(t *testing.T) {
	for _, c := range [][2]string{
		{"module former\n", "module example.org/y\n"},
		{"module former/tools\n", "module example.org/y/tools\n"},
		{"require former v0.0.0\n", "require example.org/y v0.0.0\n"},
		{"\nreplace former => ../x\n", "\nreplace example.org/y => ../x\n"},
		{"import \"former/lockstep\"\n", "import \"example.org/y/lockstep\"\n"},
		{"\t\"former\"\n", "\t\"example.org/y\"\n"},
		{"\n\tp \"former\"\nimport . \"former\"", "\n\tp \"example.org/y\"\nimport . \"example.org/y\""},
		{"+\t\"former\"\n-\tp \"former\"\n", "+\t\"example.org/y\"\n-\tp \"example.org/y\"\n"},
		{"`former/agreement/eig/sliced`", "`example.org/y/agreement/eig/sliced`"},
		{"former/agreement/eig.", "example.org/y/agreement/eig."},
		{"go doc former/...", "go doc example.org/y/..."},
		// The command, the package and other paths keep their names.
		{"go run ./cmd/former demo", "go run ./cmd/former demo"},
		{"former demo\nformer.Msg\n", "former demo\nformer.Msg\n"},
		{"x := []string{\"former\"}\n\t\"former\",\n", "x := []string{\"former\"}\n\t\"former\",\n"},
		{"former/elsewhere former/lockstepper", "former/elsewhere former/lockstepper"},
		{"https://example.com/former/lockstep", "https://example.com/former/lockstep"},
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

	"former"
	p "former/lockstep"
)

var name = "former"
var path = "former/lockstep"
var mod = "module x\nrequire former v0.0.0\n"
var code = ` + "`" + `package y

import (
	"former"
)
` + "`" + `
`
	got, err := planted().file("x/x.go", in)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.NewReplacer(
		"\t\"former\"", "\t\"example.org/y\"", "former/lockstep", "example.org/y/lockstep",
		"require former", "require example.org/y",
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
